"""What stands in for SGLang's kernels on a CPU, and the size of its KV cache: without the engine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import harness.engines
from harness.engines.provide.install import EngineEnv
from harness.engines.provide.weights import Weights
from harness.engines.start.command import build_command, configured, settable, values_in_use
from harness.engines.start.kv_cache import kv_tokens
from harness.engines.start.launch_choice import LaunchChoice
from harness.errors import SpecError
from harness.spec.backend_refs import load_backend

STAND_INS = Path(harness.engines.__file__).parent / "shims" / "sglang_cpu"
PROCESS = LaunchChoice("process", "")
SMOLLM2 = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576}
# As SGLang 0.5.23 imports them on an x86-64 CPU for a text model.
IMPORTS = """
from sgl_kernel import assign_extend_cache_locs_cpu, copy_all_layer_kv_cache_cpu, verify_tree_greedy_cpu
import torchvision.transforms as T
import torchvision.transforms.v2.functional as tvF
from torchvision.io import decode_jpeg
from torchvision.transforms import InterpolationMode, functional
"""


def python(code):
    """Standard output of `code` where the packages stand in, and nothing else is installed."""
    here = f"import sys; sys.path.insert(0, {str(STAND_INS)!r})\n"
    command = [sys.executable, "-I", "-S", "-c", here + code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def test_what_sglang_imports_is_there_and_needs_no_other_package():
    assert python(f"{IMPORTS}\nprint(InterpolationMode.BICUBIC.value, tvF is T.v2.functional)") == [
        "bicubic True"
    ]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("verify_tree_greedy_cpu(1, two=2)", "sgl_kernel.verify_tree_greedy_cpu"),
        ("functional.resize(None)", "torchvision.transforms.functional.resize"),
        ("decode_jpeg(b'')", "torchvision.io.decode_jpeg"),
    ],
)
def test_nothing_is_computed(call, named):
    code = f"{IMPORTS}\ntry:\n    {call}\nexcept NotImplementedError as error:\n    print(error)"
    assert python(code) == [f"{named} has no build for a CPU here"]


def test_names_that_python_looks_for_are_absent():
    assert python("import torchvision.io as io; print(hasattr(io, '__wrapped__'))") == ["False"]


def folder(tmp_path, **config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.mark.parametrize(
    ("dtype", "gib", "tokens"), [("bfloat16", 2, 93_184), ("float32", 2, 46_592), ("bfloat16", 4, 186_368)]
)
def test_a_kv_cache_of_so_many_gib_holds_as_many_tokens_as_vllm_says(tmp_path, dtype, gib, tokens):
    """vLLM 0.32.0 with two GiB on this model: "CPU KV cache size: 93,184 tokens"."""
    values = {"dtype": dtype, "kv_cache_gib": gib}
    assert kv_tokens(folder(tmp_path, **SMOLLM2), values) == tokens


@pytest.mark.parametrize(
    "config", [{}, {**SMOLLM2, "kv_lora_rank": 512}, {**SMOLLM2, "hidden_size": "wide"}, None]
)
def test_a_model_that_does_not_say_what_a_token_takes_has_no_size(tmp_path, config):
    place = tmp_path if config is None else folder(tmp_path, **config)
    assert kv_tokens(place, {"dtype": "bfloat16", "kv_cache_gib": 2}) is None


def started(name, place, **values):
    definition = configured(load_backend(name), None, values)
    env = EngineEnv(Path("/env/bin/python"), {}, "1", "")
    weights = Weights(str(place), "bf16", "bf16", "0", None, "")
    return build_command(definition, env=env, weights=weights, port=1, scratch=Path("/s"))


def test_both_engines_get_the_same_threads_and_the_same_cache(tmp_path):
    place = folder(tmp_path, **SMOLLM2)
    sglang, vllm = (started(name, place, threads="3", kv_cache_gib="4") for name in ("sglang", "vllm"))
    assert sglang.env["OMP_NUM_THREADS"] == vllm.env["OMP_NUM_THREADS"] == "3"
    assert vllm.env["VLLM_CPU_OMP_THREADS_BIND"] == "nobind", "it would bind a thread to each core but one"
    assert vllm.argv[vllm.argv.index("--kv-cache-memory-bytes") + 1] == str(4 * 2**30)
    assert sglang.argv[sglang.argv.index("--max-total-tokens") + 1] == "186368"


def test_weights_that_are_not_here_leave_room_for_every_sequence():
    command = started("sglang", "/nowhere")
    assert command.argv[command.argv.index("--max-total-tokens") + 1] == str(2048 * 8)


def test_values_that_do_not_reach_the_engine_are_not_recorded_or_set():
    vllm = configured(load_backend("vllm"), None, {})
    assert {"threads", "kv_cache_gib"} <= values_in_use(vllm, PROCESS).keys()
    contained = values_in_use(vllm, LaunchChoice("compose", "", "cuda"))
    assert not {"threads", "kv_cache_gib"} & contained.keys()
    assert contained["memory_share"] == 0.9
    mlx = load_backend("mlx-lm")  # it chooses its own threads
    assert "threads" not in settable(mlx)
    with pytest.raises(SpecError, match="'mlx-lm' has no value 'threads'"):
        configured(mlx, None, {"threads": "2"})
