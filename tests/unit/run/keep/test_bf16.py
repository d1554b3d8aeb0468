"""bf16 on a CPU without instructions for it is found from the facts of an engine's start."""

import pytest

from harness.model import HostFacts
from harness.run.keep.manifest import bf16_in_software

PROCESS, ON_CPU, ON_GPU = {"mode": "process"}, {"mode": "compose", "device": "cpu"}, {"mode": "compose"}
AVX2, AMX, ARM = ("avx", "avx2"), ("avx2", "avx512f", "amx_bf16"), ("asimd", "bf16")


@pytest.mark.parametrize(
    ("launch", "dtype", "features", "gpus", "emulated"),
    [
        (PROCESS, "bfloat16", AVX2, None, True),
        (ON_CPU, "bfloat16", AVX2, ("H100",), True),
        (PROCESS, "float32", AVX2, None, False),
        (PROCESS, None, AVX2, None, False),  # llama.cpp: its weights say
        (PROCESS, "bfloat16", AMX, None, False),
        (PROCESS, "bfloat16", ARM, None, False),
        (PROCESS, "bfloat16", None, None, False),
        (PROCESS, "bfloat16", AVX2, ("H100",), False),
        (ON_GPU, "bfloat16", AVX2, ("H100",), False),
    ],
)
def test_bf16_without_instructions_for_it(launch, dtype, features, gpus, emulated):
    facts = {"launch": launch, "values": {"dtype": dtype} if dtype else {}}
    assert bf16_in_software(facts, HostFacts(cpu_features=features, gpus=gpus)) is emulated


def test_of_an_unknown_machine_nothing_is_said():
    assert not bf16_in_software({"launch": PROCESS, "values": {"dtype": "bfloat16"}}, None)
