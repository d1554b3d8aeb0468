"""Capacities in a history: the line of a search, its series, and nights that find no capacity."""

import pytest

from harness.model import Capacity, Manifest, TestedLoad
from harness.nightly.missing import missing
from harness.nightly.suite import Entry
from harness.report.charts.course import change_words, course
from harness.report.findings.against import place_words
from harness.report.findings.series_words import conclusion, names
from harness.report.text import trends
from harness.verdicts import Rules, compare
from harness.verdicts.history import changes, drifts, same_course, series, stretches
from harness.verdicts.history_lines import entries, not_kept
from tests.factories.documents import changed, made
from tests.factories.summaries import cell, summary

RULES = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",))
ENDS = (2, 64)


def spoiled(load):
    return made(
        TestedLoad, value=load, runs=1, kept=0, spoiled=True, saturated=False, attainment=None,
        requests_per_s=None, why="client-busy",
    )  # fmt: skip


def search(number, value, *, kind="concurrency", limit_ms=500, ends=ENDS, first=0, **changes):
    """Manifest and summary of a night's search: probes of its lowest load and of the capacity."""
    slo = {"limits": [{"metric": "ttft_ms", "share": "p95", "limit_ms": limit_ms}]}
    cells = [
        cell("vllm", {"kind": kind, "value": load}, repeat, probe={"seconds": 1.0, "answers": 2}, slo=slo,
             workload_sha256=sha * 32)
        for load, repeat, sha in ((ends[0], first, "5f"), (value or 9, 3, f"{number:02d}"))
    ]  # fmt: skip
    found = {
        "label": "vllm", "kind": kind, "value": value, "interval": (value, value, value and value + 1),
        "searches": 3, "kept_by_search": (value,), "saturated_from": None, "tested": (), **changes,
    }  # fmt: skip
    manifest = made(
        Manifest,
        created_utc=f"2026-11-{number + 1:02d}T03:00:00+00:00",
        host={"cpu": "EPYC"},
        repeats=3,
        find_capacity=True,
        scenario={"load": {kind: list(range(ends[0], ends[1] + 1))}},
    )
    verdicts = compare(cells, RULES)._asdict()
    named = {"run": f"run-{number:02d}", "scenario": "chat", "capacity": (Capacity(**found),)}
    return manifest, summary(*cells, **named, **verdicts)


def nights(values, **changes):
    return [
        line for number, value in enumerate(values) for line in entries(*search(number, value, **changes))
    ]


def test_a_search_has_one_line_and_none_of_the_loads_that_it_tried():
    (line,) = nights([8])
    assert (line.label, line.load, line.searched, line.workload_sha256) == ("vllm", None, ENDS, "5f" * 32)
    assert list(line.metrics) == ["capacity_in_flight"]
    figure = line.metrics["capacity_in_flight"]
    assert (figure.interval, figure.runs) == ((8, 8, 9), 3)
    assert not_kept(search(0, 8)[1]) == []


def failing(number, kind, loads):
    """A night's search with these failures of 200 requests each, by load; its answer is 8."""
    manifest, found = search(number, 8, kind=kind)
    cells = [
        cell("vllm", {"kind": kind, "value": load}, repeat, probe={"seconds": 1.0, "answers": 2},
             workload_sha256="5f" * 32, requests={"ok": 200 - failed, "failed": failed})
        for repeat, (load, failed) in enumerate(loads.items())
    ]  # fmt: skip
    return manifest, changed(found, cells=cells)


@pytest.mark.parametrize(
    ("kind", "loads", "kept"),
    [
        ("concurrency", {1: 0, 8: 3, 9: 100}, [(1, 0, 200), (8, 3, 200)]),
        ("rate", {1: 0, 4: 3, 5: 40}, [(1, 0, 200), (4, 3, 200)]),
    ],
)
def test_failures_are_kept_of_the_loads_that_are_surely_carried(kind, loads, kept):
    """Near its capacity an open loop has bursts that any server may refuse."""
    (line,) = entries(*failing(0, kind, loads))
    assert [(load.value, load.failed, load.ended) for load in line.carried] == kept


@pytest.mark.parametrize(
    ("before", "tonight", "words"),
    [
        ({1: 0, 8: 0}, {1: 0, 8: 12}, "12 of 400 requests failed, 0 of 800 in earlier nights, at loads that"),
        ({1: 0, 8: 12}, {1: 0, 8: 12}, ""),
        ({1: 0, 8: 0}, {1: 0, 4: 12}, ""),
        ({1: 0, 8: 0}, {1: 0, 8: 0, 9: 100}, ""),
    ],
)
def test_a_night_whose_search_fails_more_requests_fails(before, tonight, words):
    """A limit that 5% may miss hides that 3% fail; other loads than before say nothing."""
    earlier = [line for number in range(2) for line in entries(*failing(number, "concurrency", before))]
    manifest, found = failing(2, "concurrency", tonight)
    gone = list(missing(Entry("chat", ("vllm",), find_capacity=True), "", earlier, manifest, found))
    assert [place_words(one).partition(": ")[2].startswith(words) for one in gone] == [True] * bool(words)


def test_failures_at_a_rate_say_nothing_of_as_many_users():
    """A night that was as those before it failed where the rates of another search had no failures."""
    fails = {1: 0, 4: 12}
    earlier = [
        *(line for number in range(2) for line in entries(*failing(number, "concurrency", fails))),
        *(line for number in range(12) for line in entries(*failing(number, "rate", {1: 0, 4: 0}))),
    ]
    search_of_users = Entry("chat", ("vllm",), find_capacity=True)
    assert list(missing(search_of_users, "", earlier, *failing(2, "concurrency", fails))) == []


def test_a_rate_is_a_metric_of_its_own():
    (line,) = nights([8], kind="rate")
    assert list(line.metrics) == ["capacity_requests_per_s"]


def test_a_capacity_that_fell_is_found_once_it_stays():
    assert drifts(series(nights([8] * 10 + [6] * 2))) == []
    (found,) = drifts(series(nights([8] * 10 + [6] * 3)))
    assert (found.kind, found.since.run, found.best.run) == ("step", "run-10", "run-09")
    assert found.share == pytest.approx(0.25)
    assert found.as_json()["load"] is None
    (words,) = conclusion([found.series], [found])
    assert words.startswith("chat vllm capacity: 25.0% worse than its best level, by one step, since run-10")
    (change,) = changes(found.series)
    assert change_words(change).startswith("vllm capacity: 25.0% worse since 2026-11-11")


def test_a_capacity_that_rose_or_wavers_by_a_slot_is_no_drift():
    assert drifts(series(nights([6] * 6 + [8] * 6))) == []
    assert drifts(series(nights([11, 12, 12, 11, 12, 11, 11, 12, 11, 12, 12, 11]))) == []


def test_few_nights_that_find_the_same_whole_number_are_not_sure_of_it():
    """Three of 8 and three of 7 may be 7.6 and 7.4: their equality is that of whole numbers."""
    assert len(stretches(*series(nights([8] * 3 + [7] * 3)))) == 1
    assert len(stretches(*series(nights([8] * 12 + [7] * 3)))) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"limit_ms": 400}, "limits of goodput ttft_ms.p95 500 ms"),
        ({"ends": (2, 32)}, "searched from 2 to 64"),
    ],
)
def test_other_limits_or_ends_begin_another_series(change, words):
    """A search that ends at 32 finds no more than 32."""
    both = [*nights([40]), *nights([32], **change)]
    assert not same_course(*both)
    assert [len(figure.entries) for figure in series(both)] == [1, 1]
    assert names(series(both))[0] == f"chat vllm capacity ({words})"


def test_texts_and_charts_name_a_capacity_without_a_load():
    courses = series(nights([8, 7]))
    assert "chat vllm capacity  █▁  7 in flight (2 runs)" in trends.terminal(courses, [])
    for text in (trends.terminal(courses, []), trends.markdown(courses, [])):
        assert trends.SEARCHED in text
        assert trends.EXPLAINED not in text
    chart = course(courses[0])
    assert (chart.name, chart.title) == ("course-vllm-capacity_in_flight", "vllm, capacity")
    assert chart.drawn == "answer of its search with its 95% interval"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"value": None}, "not decided: client, machine or other traffic spoiled probes at 9: client-busy"),
        ({"value": None, "kept_by_search": None, "interval": (7, None, 9)},
         "between 7 and 9 users, not confirmed by long probes: measure it again"),
        ({"tested": (spoiled(12),)},
         "may be higher: client, machine or other traffic spoiled probes at 12"),
        ({"first": 1}, "without its first repeat, its requests are not known to be those of other runs"),
    ],
)  # fmt: skip
def test_a_capacity_that_is_not_known_is_in_no_history_and_missing(changes, why):
    if changes.get("value", 8) is None:
        changes = {"tested": (spoiled(9),), "interval": (None, None, 11), **changes}
    given = {"value": 8, **changes}
    manifest, tonight = search(1, given.pop("value"), **given)
    assert entries(manifest, tonight) == []
    (words,) = not_kept(tonight)
    assert words.startswith(f"the capacity of vllm of run-01 is not in the history: {why}")
    suite_run = Entry("chat", ("vllm",), find_capacity=True)
    (gone,) = missing(suite_run, "", nights([8]), manifest, tonight)
    assert place_words(gone).startswith(f"vllm capacity: {why}")
    assert gone.names == {"vllm", "capacity_in_flight"}
    assert list(missing(suite_run, "", [], manifest, tonight)) == []  # no night knew it


def test_fewer_searches_than_asked_for_are_missing():
    suite_run = Entry("chat", ("vllm",), find_capacity=True)
    (gone,) = missing(suite_run, "", nights([8]), *search(1, 8, searches=2))
    assert place_words(gone) == "vllm capacity: 2 of 3 searches"
    assert list(missing(suite_run, "", nights([8]), *search(1, 8))) == []


def test_a_capacity_and_the_loads_of_another_run_of_the_scenario_do_not_miss_one_another():
    before = nights([8])
    assert list(missing(Entry("chat", ("vllm",)), "failed", before, None, None)) == []
    by_rate = Entry("chat", ("vllm",), find_capacity=True)
    assert list(missing(by_rate, "", before, *search(1, 8, kind="rate"))) == []
    (gone,) = missing(by_rate, "failed", before, None, None)
    assert place_words(gone) == "vllm: failed"
