"""What a gate fails on besides slower medians: the unknown, tails, failures and pauses."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from harness.model import ComparedFigure, Imported, LoadPoint
from harness.report.blocks.comparison import gate
from harness.report.text.terminal_text import terminal
from harness.verdicts.baseline import compare_runs
from harness.verdicts.gate import Place, failed_of, stalls, tail_metric
from harness.verdicts.pairs import Pairing
from harness.verdicts.rules import rules_of
from harness.verdicts.run_values import series
from tests.factories.documents import changed, made
from tests.unit.verdicts.test_baseline import run
from tests.unit.verdicts.test_pairs import cells

C4 = LoadPoint("concurrency", 4)


def counted(made, failed, ok=100):
    return [changed(one, requests={"ok": ok - failed, "failed": failed}) for one in made]


def kinds(old, new, **options):
    return [(row.kind, row.metric) for row in compare_runs([old, new], **options).gate]


def test_equal_runs_pass():
    one = run("old", counted(cells("vllm", 100), 0))
    assert kinds(one, run("new", counted(cells("vllm", 100), 0))) == []


def test_fewer_runs_than_the_baseline_are_missing():
    """A run left out may be the one that was slow."""
    document = compare_runs([run("old", cells("vllm", 100)), run("new", cells("vllm", 100, repeats=4))])
    (row,) = document.gate
    assert (row.kind, row.label, row.load, row.why) == ("missing", "vllm", C4, "4 runs, the baseline has 5")
    printed = terminal([gate(document.gate, failed=True, worse=True)], 80, color=False)
    assert "  missing: vllm c4: 4 runs, the baseline has 5" in printed.splitlines()
    assert kinds(*_short(), allow_missing=["c4"]) == [("undecided", "ttft_ms.p50")]


def test_each_row_of_several_runs_names_its_run():
    rows = compare_runs([*_short(), run("newer", cells("vllm", 200, repeats=1))]).gate
    found = gate(rows, failed=True, worse=True)
    words = [found.title, *(line.text.partition(" vllm")[0] for line in found.blocks)]
    assert words == ["gate: failed", "missing: new", "missing: newer", "undecided: new", "undecided: newer"]


def _short():
    return run("old", cells("vllm", 100)), run("new", cells("vllm", 200, repeats=1))


def test_one_run_twice_as_slow_decides_nothing_and_passes_nothing():
    assert kinds(*_short()) == [("missing", None), ("undecided", "ttft_ms.p50")]


def test_a_figure_that_became_null_is_missing_by_its_name():
    lost = [changed(one, ttft_ms={"p50": None}) for one in cells("vllm", 100)]
    rows = kinds(run("old", cells("vllm", 100)), run("new", lost))
    assert ("missing", "ttft_ms.p50") in rows


def test_fewer_runs_are_enough_where_a_rule_ended_the_run():
    stopping = {"looks": [3, 5], "repeats": 4, "reason": "decided", "budget_s": None, "spent_s": 1.0}
    new = run("new", cells("vllm", 100, repeats=4), stopping=stopping)
    assert "missing" not in {kind for kind, _ in kinds(run("old", cells("vllm", 100)), new)}
    cut = run("new", cells("vllm", 100, repeats=3), stopping=stopping)
    assert ("missing", None) in kinds(run("old", cells("vllm", 100)), cut)


@pytest.mark.parametrize(
    ("before", "now", "expected"), [(0, 6, ["failures"]), (0, 1, ["undecided"]), (1, 2, []), (6, 0, [])]
)
def test_more_failures_fail_the_gate_though_times_are_equal(before, now, expected):
    """Of the first run alone, so that five runs have `now` failures of 500 requests."""
    sides = []
    for name, failed in (("old", before), ("new", now)):
        first, *rest = cells("vllm", 100)
        sides.append(run(name, counted([first], failed), counted(rest, 0)))
    assert [kind for kind, _ in kinds(*sides)] == expected


def test_the_chance_of_a_false_failure_is_shared_among_all_loads():
    """14 of 500 requests after 5 have a p of 3.0%: of nine loads, one in four gates had such a load."""

    def side(name, failed, loads):
        made = []
        for load in range(loads):
            first, *rest = cells("vllm", 100, load={"kind": "concurrency", "value": load + 1})
            made += [*counted([first], failed if load == 0 else 5), *counted(rest, 0)]
        return run(name, made)

    assert kinds(side("old", 5, 1), side("new", 14, 1)) == [("failures", None)]
    assert kinds(side("old", 5, 9), side("new", 14, 9)) == []
    assert kinds(side("old", 5, 9), side("new", 24, 9)) == [("failures", None)]


def test_a_slow_tail_behind_equal_medians_fails_the_gate():
    random = np.random.default_rng(0)

    def side(name, late):
        made = counted(cells("vllm", 100), 0)
        pooled = {}
        for one in made:
            values = random.normal(400, 4, 100)
            values[:late] += 900
            pooled[one.cell] = {"e2e_ms": values}
        return replace(run(name, made), samples=pooled)

    assert kinds(side("old", 0), side("new", 0)) == []
    assert kinds(side("old", 0), side("new", 4)) == [("slower", "e2e_ms.p99")]


def test_an_engine_that_pauses_in_every_run_fails_the_gate():
    still = {"lost_ms": 0.0, "share": 0.0, "longest_ms": 0.0, "hit_share": 0.0}
    pause = {"at_s": 1.0, "lasted_ms": 900.0, "in_flight": 4}

    def side(name, paused):
        made = [
            changed(one, standstill=still, engine_stall=pause if one.repeat < paused else None)
            for one in counted(cells("vllm", 100), 0)
        ]
        return run(name, made)

    assert kinds(side("old", 0), side("new", 5)) == [("stalls", None)]
    assert kinds(side("old", 0), side("new", 4)) == []
    assert kinds(side("old", 1), side("new", 5)) == []


NEW = Place("tuesday", "vllm")
STILL = {"lost_ms": 0.0, "share": 0.0, "longest_ms": 0.0, "hit_share": 0.0}


def told(rows):
    return [(row.kind, row.load, row.metric, row.why) for row in rows]


def side(made):
    (one,) = series(made, C4, {})
    return one


def paused(lasted_ms, **standstill):
    """Runs whose engine paused for so long, 0 for not at all."""
    pauses = [{"at_s": 1.0, "lasted_ms": ms, "in_flight": 4} if ms else None for ms in lasted_ms]
    made = counted(cells("vllm", 100, repeats=len(lasted_ms)), 0)
    given = {"standstill": STILL, **standstill}
    return side([changed(one, engine_stall=p, **given) for one, p in zip(made, pauses, strict=True)])


def stalled(now, then):
    rules = rules_of(run("new", cells("vllm", 100)).manifest)
    return list(stalls([(NEW, Pairing(now, then, C4, rules))]))


def test_pauses_are_told_with_the_longest_one():
    found = stalled(paused([300, 900.4, 500]), paused([0, 0, 0]))
    why = "the engine paused in each of 3 runs, for 900 ms at the longest"
    assert told(found) == [("stalls", C4, None, why)]
    (row,) = stalled(paused([1, 1, 1]), paused([0, 0, 0]))
    assert (row.run, row.label) == ("tuesday", "vllm")


def test_pauses_of_too_few_runs_or_of_runs_that_did_not_watch_are_no_row():
    assert stalled(paused([900, 900]), paused([0, 0, 0])) == []
    assert stalled(paused([900, 900, 900]), paused([0, 0])) == []
    assert stalled(paused([9, 9, 9]), paused([0, 0, 0], standstill=None)) == []
    assert stalled(paused([9, 9, 9], standstill=None), paused([0, 0, 0])) == []


def paused_at(name, loads, paused_loads, repeats=3):
    """A run at so many loads, of which the first ones have a pause in each repeat."""
    pause = {"at_s": 1.0, "lasted_ms": 900.0, "in_flight": 4}
    made = [
        changed(one, standstill=STILL, engine_stall=pause if load < paused_loads else None)
        for load in range(loads)
        for one in cells("vllm", 100, repeats=repeats, load={"kind": "concurrency", "value": load + 1})
    ]
    return run(name, counted(made, 0))


@pytest.mark.parametrize(
    ("loads", "new", "repeats", "kind"),
    [
        (3, 1, 3, "stalls"),
        (4, 1, 3, "undecided"),
        (9, 2, 3, "undecided"),
        (9, 3, 3, "stalls"),
        (9, 1, 4, "stalls"),
    ],
)
def test_the_chance_of_a_false_pause_is_shared_among_all_loads(loads, new, repeats, kind):
    """Three runs pause and three others do not in 1 of 64 cases at most: nine loads show it in 13%."""
    old, later = paused_at("old", loads, 0, repeats), paused_at("new", loads, new, repeats)
    assert kinds(old, later) == [(kind, None)] * new


def test_an_undecided_pause_says_how_many_loads_show_it():
    (row,) = compare_runs([paused_at("old", 9, 0), paused_at("new", 9, 1)]).gate
    assert row.why == (
        "the engine paused in each of 3 runs, for 900 ms at the longest, and in none of the baseline's 3; "
        "1 of 9 load points like this may be chance"
    )


def failing(failed, ok=100, **changes):
    return side(counted(cells("vllm", 100, repeats=1, **changes), failed, ok))


@pytest.mark.parametrize(
    ("now", "before", "kind", "why"),
    [
        (failing(12), failing(0), "failures", "12 of 100 requests failed, 0 of 100 of the baseline"),
        (
            failing(1),
            failing(0, 40),
            "undecided",
            "1 of 100 requests failed, 0 of 40 of the baseline: "
            "too few requests to say whether more fail now",
        ),
    ],
)
def test_failures_are_told_with_those_of_the_baseline(now, before, kind, why):
    assert told(NEW.counts(now, before, C4)) == [(kind, C4, None, why)]


def test_failures_of_invalid_runs_count():
    """Three of 10 in a run that counts, and 7 of 10 in one that does not."""
    made = [*counted(cells("vllm", 100, repeats=1), 3, 10), *counted(cells("vllm", 100, repeats=1), 7, 10)]
    made[1] = changed(made[1], validity={"verdict": "INVALID", "reasons": []})
    assert failed_of(made) == (10, 20)
    (row,) = NEW.counts(side(made), failing(0, 20), C4)
    assert row.why == "10 of 20 requests failed, 0 of 20 of the baseline"


@pytest.mark.parametrize("outcome", ["lost", "no_socket"])
def test_what_the_load_generator_did_not_send_is_no_failure_of_the_engine(outcome):
    (cell,) = counted(cells("vllm", 100, repeats=1), 3, 10)
    asked = msgspec.structs.replace(cell.requests, outcomes={"ok": 7, outcome: 2, "reset": 1})
    assert failed_of([msgspec.structs.replace(cell, requests=asked)]) == (1, 8)


def figures(*verdicts, value=4, primary=True):
    """Findings at one load point, of which the first is of the primary metric."""
    point = {"kind": "concurrency", "value": value}
    return [
        made(
            ComparedFigure,
            verdict=word,
            why=f"{word} at {value}",
            load=point,
            metric=f"m{index}",
            primary=primary and not index,
        )
        for index, word in enumerate(verdicts)
    ]


def test_slower_figures_and_an_undecided_primary_one_are_rows():
    found = NEW.findings(figures("not enough runs", "slower", "not enough runs", "not comparable", "faster"))
    assert told(found) == [
        ("undecided", C4, "m0", "not enough runs at 4"),
        ("slower", C4, "m1", "slower at 4"),
    ]
    assert told(NEW.findings(figures("not comparable", "same")))[0][:3] == ("undecided", C4, "m0")
    assert told(NEW.findings(figures("same", "faster"))) == []
    assert told(NEW.findings(figures("not enough runs", primary=False))) == []


def test_each_load_point_without_any_comparison_is_one_row():
    c8 = LoadPoint("concurrency", 8)
    without, slower = figures("not comparable", "not comparable", value=8), figures("slower")
    rows = [("not compared", c8, None, "not comparable at 8"), ("slower", C4, "m0", "slower at 4")]
    assert told(NEW.findings([*without, *slower])) == rows
    assert told(NEW.findings([*slower, *without])) == rows[::-1]


def test_without_a_load_point_in_common_nothing_was_compared():
    assert told(NEW.findings([])) == [("not compared", None, None, "no load point in common")]


@pytest.mark.parametrize(
    ("ok", "declared", "tail"),
    [
        (299, [], "e2e_ms.p99"),
        (298, [], "e2e_ms.p95"),
        (299, ["e2e_ms.p99"], None),
        (299, ["e2e_ms.p95", "ttft_ms.p99"], "e2e_ms.p99"),
        (298, ["e2e_ms.p99"], None),
        (10, [], None),
    ],
)
def test_the_tail_is_the_highest_percentile_that_both_have_requests_for(ok, declared, tail):
    """0.99 to the power of 299 is below 5%, to that of 298 it is not."""
    few, many = failing(0, ok), failing(0, 1000)
    assert tail_metric(few, many, declared) == tail_metric(many, few, declared) == tail


def test_the_tail_is_not_of_answers_that_users_who_hang_up_got_in_time():
    many = failing(0, 1000)
    stay = {"seconds": 10.0, "answers": 100, "min_seconds": 0.0, "min_answers": 1}
    few = side([changed(one, sample=stay) for one in many.cells][:1])
    assert tail_metric(few, many, []) == "e2e_ms.p95"


@pytest.mark.parametrize(("p95", "tail"), [(210.0, "e2e_ms.p95"), (None, None)])
def test_the_tail_of_figures_alone_is_the_highest_percentile_that_the_baseline_states(p95, tail):
    """Three files of 200 answers: what a p99 of all of them is, none of them says."""
    file = made(Imported, level="summary")
    baseline = side(
        [
            changed(one, imported=file, e2e_ms={"p90": None, "p95": p95, "p99": None})
            for one in counted(cells("vllm", 100), 0, 200)
        ]
    )
    new = failing(0, 1000)
    assert tail_metric(new, baseline, []) == tail
