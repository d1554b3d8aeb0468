"""What a trial sends, and what is kept of it."""

from types import SimpleNamespace

import pytest

from harness.model import LoadPoint
from harness.run.setup.options import RunOptions
from harness.spec.scenario import Segment
from harness.tune import trial
from harness.tune.trial import Trials, lack
from tests.factories.summaries import cell


@pytest.fixture
def trials(tmp_path, monkeypatch):
    """Trials of two slots and 12 requests, whose engines start and measure at once."""
    notes, asked = [], []
    monkeypatch.setattr(trial, "prepare", asked.append)
    started = SimpleNamespace(folder=SimpleNamespace(path=tmp_path / "run"))
    monkeypatch.setattr(trial.Run, "start", lambda *_: started)
    monkeypatch.setattr(Trials, "_run", lambda *_: (20.0, ""))
    load = SimpleNamespace(requests=12, duration_s=None, profile=())
    options = RunOptions("fixed-length", "x")
    made = Trials(options, SimpleNamespace(load=load), LoadPoint("concurrency", 2), "ttft_ms.mean", {"a": 1},
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


@pytest.mark.parametrize(
    ("requests", "shares"), [(12, (0.25, 0.5, 1.0)), (8, (0.5, 1.0)), (4, (1.0,)), (3, (1.0,))]
)
def test_two_shares_of_the_same_requests_are_not_measured_twice(trials, requests, shares):
    trials.scenario.load.requests = requests
    assert trials.shares() == shares


def test_a_share_too_short_for_its_percentile_is_not_measured(trials):
    """Of 80 requests a quarter and a half are 20 and 40: each began an engine, and p95 needs 59 samples."""
    trials.scenario.load.requests = 80
    every = (0.25, 0.5, 1.0)
    expected = {
        "ttft_ms.p95": (1.0,),
        "session_ms.p90": (0.5, 1.0),
        "e2e_ms.p50": every,
        "itl_ms.p99": every,
        "output_tokens_per_s": every,
        "by_kind.1k.ttft_ms.p95": every,
    }
    found = {}
    for metric in expected:
        trials.metric = metric
        found[metric] = trials.shares()
    assert found == expected
    trials.scenario.load.requests, trials.metric = 2 * 59, "ttft_ms.p95"
    assert trials.shares() == (0.5, 1.0)


def test_shares_of_the_same_requests_and_another_time_are_two(trials):
    trials.scenario.load.__dict__.update(requests=4, duration_s=60.0)
    assert trials.shares() == (0.25, 0.5, 1.0)


def test_a_short_trial_goes_through_the_whole_profile_of_the_rate(trials):
    trials.scenario.load.__dict__.update(profile=(Segment(8, 0.5, 1), Segment(4, 1, 1)), repeat_profile=False)
    trials.measure({"a": 1}, 0.5)
    assert trials.asked[0].overrides["load.profile"] == [
        {"seconds": 4, "start": 0.5, "end": 1},
        {"seconds": 2, "start": 1, "end": 1},
    ]
    trials.scenario.load.repeat_profile = True
    trials.measure({"a": 1}, 0.5)
    assert "load.profile" not in trials.asked[1].overrides


CLASS = {
    "requests": 1,
    "ok": 1,
    **{name: {"mean": 9.0} for name in ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms")},
    "cached_share": None,
}


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("ttft_ms.p50", "1 sample; p50 needs 5"),
        ("tpot_ms.p50", "2 of 8 requests never got there"),
        ("by_kind.1k.ttft_ms.p50", "1 sample of this class"),
        ("by_kind.4k.ttft_ms.p50", "no figure"),
    ],
)
def test_a_trial_says_why_it_has_no_figure(metric, why):
    reasons = {"ttft_ms.p50": "1 sample; p50 needs 5", "tpot_ms.p50": "2 of 8 requests never got there"}
    assert lack(cell(by_kind={"1k": CLASS}, null_reasons=reasons), metric) == why
