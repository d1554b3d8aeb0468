"""One figure over many runs: its points, its levels, and what is said of a change."""

from dataclasses import replace

import pytest
from msgspec import structs

from harness.report.charts.course import change_words, course
from harness.report.html.several import courses
from harness.verdicts.history import changes, series, stretches
from tests.unit.verdicts.test_history import METRIC, history, night


def of(values):
    (found,) = series(history(values))
    return found


def test_each_run_is_a_point_with_its_interval():
    chart = course(of([100.0, 104.0]))
    (line,) = [line for line in chart.lines if line.role == "main"]
    first, second = line.points
    assert (first.x, second.x) == (0.0, 1.0)
    assert first.y == pytest.approx(100.0, rel=0.001)
    assert first.low < first.y < first.high
    assert [text for _, text in chart.x.ticks] == ["11-01", "11-02"]
    assert (first.mark, second.mark) == ("b11549", "")  # the version where it is new
    assert chart.y.low > 50  # not from zero: a change of a few per cent is to be seen
    assert chart.y.title == "TTFT p50, ms, not from 0"


def test_runs_of_one_day_are_told_apart_by_their_time():
    found = of([100.0, 104.0])
    entries = tuple(
        structs.replace(entry, created_utc=f"2026-11-29T15:{minute}:59+00:00")
        for entry, minute in zip(found.entries, (27, 30), strict=True)
    )
    axis = course(replace(found, entries=entries)).x
    assert (axis.title, [text for _, text in axis.ticks]) == ("runs, by hour and minute", ["15:27", "15:30"])


def test_one_run_is_no_course():
    assert course(of([100.0])) is None
    assert courses([of([100.0])], {METRIC}) is None


@pytest.mark.parametrize(("values", "drawn"), [([100.0, 110.0], 0), ([100.0, 110.0, 104.0], 1)])
def test_two_runs_have_no_level(values, drawn):
    assert [line.role for line in course(of(values)).lines].count("ideal") == drawn


def test_levels_and_the_change_between_them_are_drawn():
    values = [100.0, 100.5, 99.5, 100.2, 130.0, 130.4, 129.8]
    assert [(level.start, level.stop) for level in stretches(of(values))] == [(0, 4), (4, 7)]
    assert [level.value for level in stretches(of(values))] == pytest.approx([100.0, 130.0], rel=0.01)
    chart = course(of(values))
    (change,) = [line for line in chart.lines if line.role == "change"]
    assert {point.x for point in change.points} == {3.5}
    assert len([line for line in chart.lines if line.role == "ideal"]) == 2


def test_a_change_says_which_way_it_went_and_since_when():
    worse = [100.0, 100.5, 99.5, 100.2, 130.0, 130.4, 129.8]
    (change,) = changes(of(worse))
    assert change.ratio == pytest.approx(1.3, rel=0.01)
    assert change_words(change).startswith("vllm c4 TTFT p50: 30.0% worse since 2026-11-05 (run run-04, ")
    (better,) = changes(of(worse[::-1]))
    assert "23.1% better since 2026-11-04" in change_words(better)


@pytest.mark.parametrize(
    ("before", "since", "words"),
    [
        ("0.31", "0.32", "engine 0.32; before it 0.31"),
        (None, "0.32", "engine 0.32; before it not known"),
        ("0.31", None, "engine version not known; before it 0.31"),
    ],
)
def test_another_version_is_named_in_the_change(before, since, words):
    entries = [
        entry
        for number, value in enumerate([100.0, 100.5, 99.5, 130.0, 130.4, 129.8])
        for entry in night(number, value, engine_version=before if number < 3 else since)
    ]
    (found,) = series(entries)
    assert words in change_words(changes(found)[0])
    unknown = "version not known"
    line = next(line for line in course(found).lines if line.role == "main")
    assert [point.mark for point in line.points] == [before or unknown, "", "", since or unknown, "", ""]


def test_the_page_says_how_many_runs_a_change_needs():
    few = courses([of([100.0, 130.0])], {METRIC})
    assert "No change of level was found: the longest series has 2 runs, and two levels need 6." in few
    assert "worse since" in courses([of([100.0, 100.5, 99.5, 130.0, 130.4, 129.8])], {METRIC})


def test_a_level_that_is_accepted_is_no_alarm_of_the_page():
    """From the day of its first run on; the chart shows the levels before it all the same."""
    found = of([100.0, 100.5, 99.5, 130.0, 130.4, 129.8])
    day = found.entries[3].created_utc[:10]
    accepted = courses([found], {"e2e_ms.p50"}, day)
    assert "<li>accepted: chat vllm c4 TTFT p50: 30.1% worse since" in accepted
    assert 'class="slower"' not in accepted
    assert "Other figures: 1 chart" in accepted
    judged = courses([found], {"e2e_ms.p50"}, found.entries[2].created_utc[:10])
    assert 'class="slower">chat vllm c4 TTFT p50: 30.1% worse since' in judged
    assert "Other figures" not in judged  # what changed is open


def test_the_page_tells_figures_of_one_label_apart():
    worse = [100.0, 100.5, 99.5, 130.0, 130.4, 129.8]
    chat, code = of(worse), replace(of(worse), scenario="code")
    page = courses([chat, code], {METRIC})
    for name in ("chat vllm c4 TTFT p50", "code vllm c4 TTFT p50"):
        assert f"<figcaption><b>{name}</b>" in page
        assert f"{name}: 30.1" in page


def test_metrics_that_do_not_decide_are_folded():
    found = [of([100.0, 101.0])]
    assert "<details>" not in courses(found, {METRIC})
    assert "Other figures: 1 chart" in courses(found, {"e2e_ms.p50"})
