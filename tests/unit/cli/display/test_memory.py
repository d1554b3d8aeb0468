"""What a dry run says of memory: sizes by hand, and nothing where one of them is not known."""

import json
from types import SimpleNamespace

import pytest

from harness.cli.display.memory import memory_lines
from harness.cli.main import main
from harness.engines.check.available import Machine
from harness.spec.models import Model, Random, Track
from tests.unit.engines.check.test_preflight import BF16, Complete, planned

GIB = 1 << 30


class Here(Complete):
    """With the folders of this machine."""

    folder_bytes = Machine.folder_bytes


def lines(backends, model, *, users=64, kind="concurrency", gib=None, device="cuda", **values):
    loads = [SimpleNamespace(kind=kind, value=value) for value in (1, users)]
    plan = [SimpleNamespace(cells=[SimpleNamespace(load=load) for load in loads])]
    engines = planned(backends, "process", device, model=model, **values)
    machine = Here(**({} if gib is None else {"gpu memory": gib * GIB}))
    return [*memory_lines(SimpleNamespace(plan=plan, engines=engines), machine)]


SEVEN = Model("A model", "its own", None, 7616, 28_672, tracks={"bf16": Track("hf", "bf16", repo="them/m")})
SIZES = "weights 14.2 GiB, KV cache 56 KiB a token in 16 bits"


def test_a_gpu_of_24_gib_says_how_long_requests_may_be():
    """Left are 24 × 2^30 - 2 × 7,616 × 10^6 bytes, and a token takes 2 × 28,672: 183,764 tokens."""
    found = f"memory of vllm and sglang: {SIZES}; GPU 0 with 24.0 GiB has room for at most 183,000 tokens"
    end = "less what the engine itself needs"
    each = "2,870 for each of 64 requests at once"
    assert lines("vllm,sglang", SEVEN, gib=24) == [f"{found}, {each}, {end}"]
    assert lines("vllm,sglang", SEVEN, gib=24, kind="rate") == [f"{found}, {end}"]


def test_without_a_gpu_here_the_sizes_are_those_of_the_model():
    found = f"memory of vllm: {SIZES}"
    assert lines("vllm", SEVEN) == [f"{found}; 64 requests at once of 1,000 tokens: 3.4 GiB"]
    assert lines("vllm", SEVEN, users=1) == [f"{found}; a request of 1,000 tokens: 0.1 GiB"]


def test_weights_that_do_not_fit_leave_no_room():
    assert lines("vllm", SEVEN, gib=14) == [f"memory of vllm: {SIZES}"]


@pytest.mark.parametrize(
    ("model", "device"),
    [
        (BF16, "cuda"),  # nobody says what a token takes
        (Model("M", "l", None, 7616, 28_672, tracks={"awq": Track("hf", "AWQ", repo="them/m")}), "cuda"),
        (SEVEN, "cpu"),
    ],
)
def test_what_is_not_known_is_not_said(model, device):
    assert lines("vllm", model, gib=24, device=device) == []


def test_a_folder_says_by_its_config_what_a_token_takes(tmp_path):
    sizes = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 512}
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "config.json").write_text(json.dumps(sizes))
    folder = Model("M", "l", tracks={"local": Track("hf", "bfloat16", path=str(tmp_path))})
    (found,) = lines("vllm", folder)
    assert "KV cache 2 KiB a token" in found  # 2 × 4 layers × 2 heads × 64 numbers × 2 bytes
    drawn = Random("m", layers=4, width=512, heads=8, kv_heads=2, feed_forward=1, context=1)
    random = Model("M", "l", None, 100, tracks={"bf16": Track("hf", "bf16", random=drawn)})
    (found,) = lines("vllm", random)
    assert "KV cache 2 KiB a token" in found


def test_a_dry_run_says_it_below_its_backends(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    words = (
        "--backends",
        "vllm",
        "--model",
        "qwen2.5-7b-instruct",
        "--device",
        "cuda",
        "--launch",
        "process",
    )
    main(["run", "--scenario", "shared-prefix", *words, "--concurrency", "64", "--dry-run"])
    assert f"\n  memory of vllm: {SIZES}; " in capsys.readouterr().out
