"""What a trial sends, and what is kept of it."""

from types import SimpleNamespace

import pytest

from harness.model import LoadPoint
from harness.run.setup.options import RunOptions
from harness.tune import trial
from harness.tune.trial import Trials


@pytest.fixture
def trials(tmp_path, monkeypatch):
    """Trials of two slots and 12 requests, whose engines start and measure at once."""
    notes, asked = [], []
    monkeypatch.setattr(trial, "prepare", asked.append)
    started = SimpleNamespace(folder=SimpleNamespace(path=tmp_path / "run"))
    monkeypatch.setattr(trial.Run, "start", lambda *_: started)
    monkeypatch.setattr(Trials, "_run", lambda *_: (20.0, ""))
    load = SimpleNamespace(requests=12, duration_s=None)
    options = RunOptions("fixed-length", "x")
    made = Trials(options, SimpleNamespace(load=load), LoadPoint("concurrency", 2), "ttft_ms.p50", {"a": 1},
                  tmp_path, SimpleNamespace(note=notes.append), lambda: 0.0)  # fmt: skip
    made.notes, made.asked = notes, asked
    return made


def test_the_share_of_a_trial_is_that_of_the_requests_it_sent(trials):
    """A quarter is three: fewer than two for each slot."""
    for share in (0.25, 0.5, 1.0):
        trials.measure({"a": 1}, share)
    assert [options.overrides["load.requests"] for options in trials.asked] == [4, 6, 12]
    assert [done.share for done in trials.done] == [4 / 12, 0.5, 1.0]
    assert [note.partition(":")[0] for note in trials.notes] == [
        "trial 1, 33% of the requests",
        "trial 2, 50% of the requests",
        "trial 3, 100% of the requests",
    ]
