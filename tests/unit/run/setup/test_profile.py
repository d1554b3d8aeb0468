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
