"""Which sizes of a scenario a run takes."""

import pytest

from harness.run.setup import profile
from harness.run.setup.options import RunOptions


@pytest.mark.parametrize(
    ("visible", "given", "chosen"),
    [
        (None, {}, "gpu"),
        ("", {}, "cpu"),
        ("-1", {}, "cpu"),
        ("", {"gpus": ("0",)}, "gpu"),
        ("", {"device": "cuda"}, "gpu"),
        (None, {"device": "cpu"}, "cpu"),
        (None, {"profile": "cpu"}, "cpu"),
    ],
)
def test_gpus_that_are_all_hidden_make_no_profile_of_gpus(monkeypatch, visible, given, chosen):
    monkeypatch.setattr(profile, "gpu_names", lambda: ("H100",))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert profile.profile_of(RunOptions("fixed-length", "vllm", **given)) == chosen


@pytest.mark.parametrize(
    ("backends", "chosen"),
    [
        ("vllm=http://gpu-box:8000", "gpu"),
        ("vllm=http://10.0.0.1:8000+http://10.0.0.2:8000,old=vllm=https://a.example", "gpu"),
        ("vllm=http://127.0.0.1:8000", "cpu"),
        ("vllm=http://gpu-box:8000,sglang=http://localhost:8001", "cpu"),
        ("vllm=http://gpu-box:8000,sglang", "cpu"),
    ],
)
def test_a_machine_without_a_gpu_says_nothing_of_servers_on_other_machines(monkeypatch, backends, chosen):
    """A laptop in front of a GPU box would ask it for a fraction of the prompt."""
    monkeypatch.setattr(profile, "gpu_names", lambda: ())
    assert profile.profile_of(RunOptions("fixed-length", backends)) == chosen
    assert profile.profile_of(RunOptions("fixed-length", backends, profile="cpu")) == "cpu"
    assert profile.profile_of(RunOptions("fixed-length", backends, device="cpu")) == "cpu"
