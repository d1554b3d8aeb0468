"""Pairs without a verdict, and the repeats that would decide them."""

from types import SimpleNamespace

import pytest

from harness.report.findings.undecided import undecided


def pair(needed, runs=(3, 3), measured=(3, 3), *, primary=True, metric="ttft_ms.p50"):
    return SimpleNamespace(
        verdict="not enough runs",
        primary=primary,
        metric=metric,
        ratio=None,
        runs_needed=needed,
        runs=runs,
        measured=measured,
    )


def among(*pairs, blocks=1):
    return undecided(SimpleNamespace(comparison=pairs, verdict_rules=SimpleNamespace(blocks=blocks)))


@pytest.mark.parametrize(
    ("found", "blocks", "repeats"),
    [
        ([pair(6)], 1, 6),
        ([pair(6, runs=(2, 3))], 1, 9),  # one of three was left out: three runs are two that count
        ([pair(6, runs=(0, 3))], 1, None),
        ([pair(12, runs=(4, 4), measured=(4, 4))], 4, 3),  # four blocks of a start
        ([pair(4), pair(8), pair(None)], 1, 8),  # half of those that can be decided
        ([pair(4), pair(20, primary=False)], 1, 4),
    ],
)
def test_the_repeats_that_would_decide_are_for_half_of_the_pairs(found, blocks, repeats):
    assert among(*found, blocks=blocks).repeats == repeats


def test_pairs_are_counted_among_those_of_their_metrics():
    decided = SimpleNamespace(verdict="faster", primary=True, metric="ttft_ms.p50")
    found = among(pair(6), pair(6, primary=False, metric="e2e_ms.p50"), decided)
    assert found.words == "1 of 2 pairs is undecided"
    assert among(decided) is None
