"""What a gate fails on besides slower medians: the unknown, tails, failures and pauses."""

import numpy as np
import pytest

from harness.model import LoadPoint
from harness.report.text import baseline
from harness.stats.binomial import more_often
from harness.verdicts.baseline import compare_runs
from tests.factories.documents import changed
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
    assert "  missing: vllm c4: 4 runs, the baseline has 5" in baseline.gate_lines(document.gate, failed=True)
    assert kinds(*_short(), allow_missing=["c4"]) == [("undecided", "ttft_ms.p50")]


def _short():
    return run("old", cells("vllm", 100)), run("new", cells("vllm", 200, repeats=1))


def test_one_run_twice_as_slow_decides_nothing_and_passes_nothing():
    assert kinds(*_short()) == [("missing", None), ("undecided", "ttft_ms.p50")]


def test_fewer_runs_are_enough_where_a_rule_ended_the_run():
    stopping = {"looks": [3, 5], "repeats": 4, "reason": "decided", "budget_s": None, "spent_s": 1.0}
    new = run("new", cells("vllm", 100, repeats=4), stopping=stopping)
    assert "missing" not in {kind for kind, _ in kinds(run("old", cells("vllm", 100)), new)}
    cut = run("new", cells("vllm", 100, repeats=3), stopping=stopping)
    assert ("missing", None) in kinds(run("old", cells("vllm", 100)), cut)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(0, 6, ["failures"]), (0, 1, ["undecided"]), (1, 2, []), (6, 0, [])],
)
def test_more_failures_fail_the_gate_though_times_are_equal(before, now, expected):
    """Of the first run alone, so that five runs have `now` failures of 500 requests."""
    sides = []
    for name, failed in (("old", before), ("new", now)):
        first, *rest = cells("vllm", 100)
        sides.append(run(name, counted([first], failed), counted(rest, 0)))
    assert [kind for kind, _ in kinds(*sides)] == expected


def test_the_exact_test_is_that_of_a_table_by_hand():
    """3 of 4 against 1 of 4: (C(4,3) C(4,1) + C(4,4) C(4,0)) / C(8,4) = 17 / 70."""
    assert more_often(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert more_often(0, 4, 0, 4) == pytest.approx(1)


def test_a_slow_tail_behind_equal_medians_fails_the_gate():
    random = np.random.default_rng(0)

    def side(name, late):
        made = counted(cells("vllm", 100), 0)
        pooled = {}
        for one in made:
            values = random.normal(400, 4, 100)
            values[:late] += 900
            pooled[one.cell] = {"e2e_ms": values}
        return changed_samples(run(name, made), pooled)

    assert kinds(side("old", 0), side("new", 0)) == []
    assert kinds(side("old", 0), side("new", 4)) == [("slower", "e2e_ms.p99")]


def changed_samples(one, pooled):
    return type(one)(one.name, one.manifest, one.cells, pooled)


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
