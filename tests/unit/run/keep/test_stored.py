"""What a run leaves for later ones."""

from types import SimpleNamespace

import pytest

from harness.run.keep.stored import Stored
from harness.run.setup import noise
from tests.factories.summaries import summary

ENTRY = {
    "load": {"kind": "concurrency", "value": 4},
    "metric": "ttft_ms.p50",
    "difference_upper": 0.02,
    "ratio": [1.0, 1.0, 1.0],
}


@pytest.mark.parametrize(("changed", "kept"), [([], ["first", "second"]), (["a#b"], ["second"])])
def test_an_engine_that_changed_leaves_no_noise_floor(tmp_path, monkeypatch, changed, kept):
    """It would be taken for that of the version of its last start."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    labels = {"a#a": "first", "a#b": "first", "b#a": "second", "b#b": "second"}
    backends = {label: SimpleNamespace(noise_key=key) for label, key in labels.items()}
    warnings = [{"code": "engine-changed", "text": "", "hint": None, "backend": label} for label in changed]
    measured = [{**ENTRY, "backend": name} for name in "ab"]
    run = SimpleNamespace(
        summary=summary(noise=measured, warnings=warnings),
        manifest=SimpleNamespace(document=SimpleNamespace(backends=backends)),
    )
    Stored.keep_noise(run)
    found = [key for key in ("first", "second") if noise.stored(key) == {"c4": {"ttft_ms.p50": 0.02}}]
    assert found == kept
