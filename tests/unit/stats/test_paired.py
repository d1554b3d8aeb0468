"""Paired answers: hand-worked tests, the interval that belongs to them, and looks."""

import itertools
import math

import numpy as np
import pytest

from harness.stats.paired import LEVEL, LOOKS, change, look_ends, mcnemar, share_interval
from harness.stats.paired import _look as look
from harness.stats.paired import _score as score
from harness.stats.paired import _tango as tango


def marks(lost, gained, both, neither=0):
    """Of the first and the second."""
    return "1" * lost + "0" * gained + "1" * both + "0" * neither, "0" * lost + "1" * (gained + both) + (
        "0" * neither
    )


def mixed(first, second):
    """Every kind of pair spread evenly."""
    order = sorted(range(len(first)), key=lambda place: place * 7919 % len(first))
    return "".join(first[place] for place in order), "".join(second[place] for place in order)


@pytest.mark.parametrize(
    ("lost", "gained", "expected"), [(6, 0, 2 / 64), (0, 6, 2 / 64), (5, 1, 14 / 64), (3, 3, 1), (0, 0, 1)]
)
def test_mcnemar_worked_out_by_hand(lost, gained, expected):
    assert mcnemar(lost, gained) == pytest.approx(expected)


def test_the_score_is_the_quantile_at_the_ends_of_the_interval():
    low, high = tango(60, 30, 600, 0.05)
    assert score(60, 30, 600, low) == pytest.approx(1.96, abs=0.001)
    assert score(60, 30, 600, high) == pytest.approx(-1.96, abs=0.001)
    # Without a difference it is McNemar's statistic.
    assert score(60, 30, 600, 0.0) == pytest.approx(-30 / math.sqrt(90))


@pytest.mark.parametrize("difference", [-0.6, -0.2, 0.1, 0.5])
def test_the_score_counts_in_the_spread_of_the_likeliest_shares(difference):
    """Of all shares lost under the difference, that by which 7 lost and 12 gained of 40 are likeliest."""
    lost = np.linspace(max(0.0, -difference), (1 - difference) / 2, 200_001)[1:-1]
    gained = lost + difference
    likeliest = lost[np.argmax(7 * np.log(lost) + 12 * np.log(gained) + 21 * np.log(1 - lost - gained))]
    spread = 40 * (2 * likeliest + difference - difference**2)
    assert score(7, 12, 40, difference) == pytest.approx((5 - 40 * difference) / math.sqrt(spread), rel=1e-4)


def test_the_score_of_what_cannot_have_been_is_beyond_every_limit():
    """If all pairs were gained, nine of ten gained cannot have been seen, and ten are what was expected."""
    assert score(0, 9, 10, 1.0) == -math.inf
    assert score(0, 10, 10, 1.0) == 0.0


def test_the_share_of_a_condition():
    low, high = share_interval(32, 58)
    assert (low, high) == (pytest.approx(0.4154, abs=1e-4), pytest.approx(0.6826, abs=1e-4))
    assert share_interval(0, 10) == (0.0, pytest.approx(0.3085, abs=1e-4))


def test_the_interval_excludes_no_change_exactly_where_the_test_decides():
    looks = {pair: look(*pair, 100, LEVEL) for pair in itertools.product(range(12), repeat=2)}
    excluded = {pair for pair, found in looks.items() if found.low > 0 or found.high < 0}
    assert excluded == {pair for pair in looks if mcnemar(*pair) < LEVEL}
    assert 0 < len(excluded) < len(looks)
    assert [pair for pair, found in looks.items() if not found.low <= found.estimate <= found.high] == []


def test_what_is_said_of_losses_and_gains():
    assert change(*mixed(*marks(60, 20, 520))).verdict == "loses"
    assert change(*mixed(*marks(20, 60, 520))).verdict == "gains"
    assert change(*mixed(*marks(40, 38, 522))).verdict == "same"
    assert change(*mixed(*marks(5, 4, 40))).verdict == "undecided"
    assert change("", "") is None
    assert change("11-", "--1") is None
    assert change("0" * 600, "0" * 600) is None, "nothing was right, so nothing could be lost"
    assert change("0" * 600, "0" * 599 + "1").verdict == "same"


def test_looks_spend_the_level_and_end_at_what_was_asked():
    assert sum(part for _, part in LOOKS) == pytest.approx(1)
    assert look_ends(658) == (220, 439, 658)
    first, second = mixed(*marks(120, 0, 480))
    early = change(first, second)
    assert early.compared == 200
    assert early.level == pytest.approx(LEVEL / 10)
    # Answers after the look that decided change nothing, nor do those that were not asked.
    assert change(first, second[:200] + "-" * 400) == early
    assert change(first, second[:200] + "1" * 400) == early


def test_a_failed_look_is_tested_again_with_more():
    first, second = mixed(*marks(60, 30, 510))
    found = change(first, second)
    assert (found.compared, found.lost, found.gained) == (600, 60, 30)
    assert found.level == pytest.approx(0.6 * LEVEL)
    assert found.verdict == "loses"
    words = found.between("a", "b", under_load=False).words
    assert words.startswith(("loses 1.5 to 8.", "loses 1.6 to 8."))
    assert words.endswith("(60 lost, 30 gained of 600)")


@pytest.mark.parametrize(
    ("lost", "gained", "count", "level", "text"),
    [
        (8, 7, 239, 0.015, "undecided: -5.003 to +4.1 points (8 lost, 7 gained of 239)"),
        (32, 32, 358, 0.03, "undecided: -5.01 to +5.01 points (32 lost, 32 gained of 358)"),
        (33, 12, 120, 0.0025, "loses 0.03 to 33.7 points (33 lost, 12 gained of 120)"),
        (12, 33, 120, 0.0025, "gains 0.03 to 33.7 points (12 lost, 33 gained of 120)"),
    ],
)
def test_no_end_of_an_interval_reads_as_what_the_verdict_excludes(lost, gained, count, level, text):
    assert look(lost, gained, count, level).between("a", "b", under_load=False).words == text
