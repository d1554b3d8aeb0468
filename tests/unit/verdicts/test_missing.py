"""What a later run lacks: load points, runs, figures and whole backends, and the reasons that are printed."""

import pytest

from harness.errors import SpecError
from harness.model import LoadPoint, Manifest
from harness.verdicts.missing import Missing, check_allowed, failed_to_start, missing
from tests.factories.documents import changed, made
from tests.factories.summaries import cell, verdict

P50, RATE = "ttft_ms.p50", "output_tokens_per_s"
C4 = LoadPoint("concurrency", 4)
DIED = verdict("INVALID", "failed-requests", "9 of 32", "1%", "")
BUSY = verdict("INVALID", "client-busy", "99%", "90%", "")


def runs(count=4, *, value=4, **by_repeat):
    """Cells of one load; `by_repeat` has the validity of single ones, as `r2=…`."""
    return [
        cell(
            "vllm",
            {"kind": "concurrency", "value": value},
            repeat,
            **({"validity": by_repeat[f"r{repeat}"]} if f"r{repeat}" in by_repeat else {}),
        )
        for repeat in range(count)
    ]


def without(cells, *repeats, why=None):
    """The same without a rate in these repeats."""
    gone = {"output_tokens_per_s": None, "null_reasons": {RATE: why} if why else {}}
    return [changed(one, **gone) if one.repeat in repeats else one for one in cells]


def lacks(old, new, metrics=(P50, RATE), decided_by=None):
    return [(one.load.label, one.metric, one.why) for one in missing(old, new, metrics, decided_by)]


def test_equal_runs_lack_nothing():
    assert lacks(runs(), runs()) == []


def test_a_load_point_and_runs_of_one_that_are_not_there_are_missing():
    old = [*runs(), *runs(value=8), *runs(value=16)]
    new = [*runs(), *runs(1, value=8)]
    assert lacks(old, new) == [("c8", None, "1 run, the baseline has 4"), ("c16", None, "not measured")]
    assert lacks(old, runs()) == [("c8", None, "not measured"), ("c16", None, "not measured")]
    assert lacks(runs(), runs(3)) == [("c4", None, "3 runs, the baseline has 4")]
    assert lacks(runs(3), [*runs(), *runs(value=8)]) == []


def test_loads_that_a_capacity_search_tried_are_not_missing():
    probe = {"seconds": 45.0, "answers": 124}
    old = [changed(one, probe=probe) for one in (*runs(), *runs(value=8), *runs(1, value=12, r0=DIED))]
    assert lacks(old, [changed(one, probe=probe) for one in (*runs(1), *runs(1, value=11))]) == []
    assert lacks(runs(), runs(1)) != []


def test_where_a_rule_ended_the_new_run_its_number_is_enough():
    assert lacks(runs(), runs(3), decided_by=3) == []
    assert lacks(runs(), runs(2), decided_by=3) == [("c4", None, "2 runs, the baseline has 3")]
    assert lacks(runs(2), runs(2), decided_by=3) == []


def test_a_larger_share_of_invalid_runs_is_missing_with_its_codes():
    assert lacks(runs(), runs(r1=DIED, r2=BUSY, r3=DIED)) == [
        ("c4", None, "INVALID failed-requests, client-busy 3 of 4")
    ]
    assert lacks(runs(r0=DIED), runs(r1=BUSY)) == []
    assert lacks(runs(2, r0=DIED), runs(4, r0=DIED, r1=DIED)) == []


def test_a_load_point_where_the_baseline_has_only_invalid_runs_is_not_missing():
    assert lacks(runs(1, r0=DIED), runs(value=8)) == []
    assert lacks([*runs(1, r0=DIED), *runs(value=8)], runs()) == [("c8", None, "not measured")]


def test_a_figure_that_is_null_says_why_if_anybody_knows():
    assert lacks(runs(), without(runs(), 0, 1, 2, 3)) == [("c4", RATE, "null in 4 of 4 runs")]
    assert lacks(runs(), without(runs(), 1, 2, why="no counts")) == [
        ("c4", RATE, "null in 2 of 4 runs: no counts")
    ]
    partly = [*without(runs(2), 0), *without(runs(3), 2, why="no counts")[2:]]
    assert lacks(runs(3), partly) == [("c4", RATE, "null in 2 of 3 runs: no counts")]


def test_a_figure_that_was_as_often_null_in_the_baseline_is_not_missing():
    assert lacks(without(runs(), 0), without(runs(), 3)) == []
    assert lacks(without(runs(), 0), without(runs(), 2, 3)) == [("c4", RATE, "null in 2 of 4 runs")]
    assert lacks(without(runs(2), 0), without(runs(), 0, 1)) == []  # half of the runs of both
    assert lacks(without(runs(), 0, 1, 2, 3), without(runs(), 0, 1, 2, 3)) == []
    assert lacks(runs(), without(runs(), 0), metrics=(P50,)) == []


@pytest.mark.parametrize("count", range(1, 12))
def test_a_run_lacks_nothing_that_it_has_itself(count):
    for gone in range(count + 1):
        cells = without(runs(count), *range(gone))
        assert lacks(cells, cells) == []


def test_a_rate_of_0_is_as_good_as_none():
    """There is no ratio to it, so that no verdict would say that it fell."""
    none = [changed(one, output_tokens_per_s=0.0) for one in runs()]
    assert lacks(runs(), none) == [("c4", RATE, "0 in 4 of 4 runs")]
    assert lacks(runs(), [*none[:1], *without(runs(), 1)[1:]]) == [("c4", RATE, "0 or null in 2 of 4 runs")]
    assert lacks(none, none) == lacks(none, runs()) == []
    assert lacks(runs(), [changed(one, ttft_ms={"p50": 0.0}) for one in runs()]) == []


@pytest.mark.parametrize(
    ("what", "names"),
    [
        (Missing("vllm", None, None, ""), {"vllm"}),
        (Missing("vllm", C4, None, ""), {"vllm", "c4", "vllm/c4"}),
        (Missing("vllm", C4, P50, ""), {"vllm", "c4", "vllm/c4", P50}),
    ],
)
def test_any_name_of_what_is_missing_allows_it(what, names):
    assert what.names == names
    for name in names:
        assert what.of("new", ["tgi", name]).allowed
    assert not what.of("new", ["tgi", "c8", "vllm/c8", RATE]).allowed
    assert not what.of("new", []).allowed


def test_an_entry_of_the_document_names_the_run_that_lacks_it():
    found = Missing("vllm", C4, P50, "null in 4 of 4 runs").of("new", [])
    assert (found.run, found.label, found.load, found.metric) == ("new", "vllm", C4, P50)
    assert found.why == "null in 4 of 4 runs"


def test_starts_that_failed_are_counted_and_the_first_is_quoted():
    failures = [
        {"backend": "tgi", "repeat": 0, "error": "no memory"},
        {"backend": "vllm", "repeat": 1, "error": "port 8000 is taken"},
        {"backend": "vllm", "repeat": 2, "error": "no memory"},
    ]
    manifest = made(Manifest, failures=failures)
    both = failed_to_start(manifest, "vllm")
    assert both == Missing("vllm", None, None, "did not start in 2 runs: port 8000 is taken")
    assert failed_to_start(manifest, "tgi").why == "did not start in 1 run: no memory"
    assert failed_to_start(manifest, "sglang") is None


def test_only_a_name_that_allows_something_is_accepted():
    cells = runs(1)
    check_allowed(["vllm", "c4", "vllm/c4", P50], cells, [P50])
    for name in ("c8", "vllm/c8", RATE):
        with pytest.raises(SpecError, match=f"no backend, load point or metric '{name}'") as raised:
            check_allowed(["vllm", name], cells, [P50])
        assert raised.value.where == "--allow-missing"
