"""Verdicts at planned looks: the same words whoever asks, never more than the level, and an end."""

from dataclasses import replace

import numpy as np
import pytest

from harness.stats.runs import Shift
from harness.verdicts import Rules, compare
from harness.verdicts.comparison import rows_of
from harness.verdicts.pairs import find
from harness.verdicts.prospects import Prospect
from harness.verdicts.sequential import find_by_looks, looks_between, take_look
from tests.factories.documents import changed
from tests.factories.summaries import UNSTEADY, cell, verdict

RULES = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",), looks=(3, 4, 5, 7, 10))
DIED = verdict("INVALID", "engine-died", "", "", "")


def cells(label, p50, noise, *, load=None, **changes):
    """One per entry of `noise`, in per cent; backends take turns in time by their label."""
    return [
        cell(
            label,
            load,
            repeat,
            p50=p50 * (1 + part / 100),
            workload_sha256=f"w{repeat}",
            started_unix_ns=1000 * repeat + sum(map(ord, label)),
            **changes,
        )
        for repeat, part in enumerate(noise)
    ]


CALM = (0.2, -0.1, 0.1, -0.2, 0.0, 0.1, -0.1, 0.2, 0.0, -0.2)
WILD = (6.0, -5.0, 4.0, -6.0, 5.0, -4.0, 6.0, -5.0, 4.0, -6.0)


def after(repeats, *series, rules=RULES):
    found = [one for label in series for one in label if one.repeat < repeats]
    return rows_of(found, {}), replace(rules, last_look=repeats)


@pytest.mark.parametrize(
    ("least", "most", "looks"),
    [(3, 10, (3, 4, 5, 7, 10)), (3, 3, (3,)), (3, 6, (3, 4, 5, 6)), (6, 12, (6, 7, 10, 12)), (4, 5, (4, 5))],
)
def test_looks_begin_and_end_where_they_are_told_to(least, most, looks):
    assert looks_between(least, most) == looks


def test_the_looks_share_the_level():
    assert RULES.look_alpha == pytest.approx(0.01)
    assert RULES.record.confidence == pytest.approx(0.99)
    assert replace(RULES, looks=()).look_alpha == 0.05


def test_far_apart_is_decided_at_the_first_look():
    found = take_look(*after(3, cells("a", 100, CALM), cells("b", 150, CALM[::-1])))
    assert (found.decided, found.undecided, found.needed) == (1, (), set())
    assert found.words == "decided 1 of 1 pairs"
    (one,) = find_by_looks(*after(3, cells("a", 100, CALM), cells("b", 150, CALM[::-1])))
    assert one.chance is None


def test_only_what_an_undecided_pair_needs_goes_on():
    """a and b are not told apart yet; c is far from both."""
    noise = [one / 4 for one in WILD]
    a, b = cells("a", 100, noise), cells("b", 100, [-one for one in noise])
    found = take_look(*after(3, a, b, cells("c", 300, CALM)))
    assert found.decided == 2
    assert {label for label, _ in found.needed} == {"a", "b"}
    assert found.words == "decided 2 of 3 pairs"


def test_what_the_repeats_allowed_would_hardly_decide_is_given_up():
    a, b = cells("a", 100, WILD), cells("b", 100, [-one for one in WILD])
    found = take_look(*after(4, a, b))
    assert (found.undecided, found.needed, found.unlikely) == ((), set(), 1)
    assert found.words == "decided 0 of 1 pairs, 1 given up"
    (one,) = find_by_looks(*after(4, a, b))
    # The looks are five and share the level; four of ten repeats are done, and runs are paired.
    shift = Shift.paired(*(np.log([made.ttft_ms.p50 for made in series[:4]]) for series in (a, b)))
    prospect = Prospect(np.log(1.02), np.log(1.05), 0.01, 0.01)
    assert one.chance == pytest.approx(prospect.chance(shift, 4, 10, samples=1))
    assert 0 < one.chance < 0.2
    longer = replace(RULES, looks=looks_between(3, 112))
    assert take_look(*after(4, a, b, rules=longer)).unlikely == 0


def test_a_pair_goes_on_after_a_run_that_is_not_steady():
    """One of three leaves too few; then 1 of 4 are left out. Two of three are too many."""
    a, b = cells("a", 100, CALM), cells("b", 150, CALM[::-1])
    a[1] = changed(a[1], validity=UNSTEADY)
    assert take_look(*after(3, a, b)).needed == {(label, a[0].point) for label in ("a", "b")}
    (one,) = find_by_looks(*after(4, a, b))
    assert (one.verdict, one.left_out) == ("faster", ({"not steady": 1}, {}))
    a[2] = changed(a[2], validity=UNSTEADY)
    assert take_look(*after(3, a, b)).not_comparable == 1


def test_a_decided_word_stays_with_the_interval_of_its_look():
    a, b = cells("a", 100, CALM), cells("b", 110, CALM[::-1])
    noisy = [one if one.repeat < 3 else changed(one, ttft_ms={"p50": 300.0 * one.repeat}) for one in b]
    early = find_by_looks(*after(3, a, noisy))
    late = find_by_looks(*after(5, a, noisy))
    assert [one.verdict for one in early] == ["faster"]
    assert late[0] == early[0]
    assert late[0].runs == (3, 3)
    assert find(after(5, a, noisy)[0], RULES)[0].verdict != "faster"


def test_a_run_that_fails_after_the_word_takes_it_back():
    a, b = cells("a", 100, CALM), cells("b", 110, CALM[::-1])
    a[4] = changed(a[4], validity=DIED)
    assert find_by_looks(*after(4, a, b))[0].verdict == "faster"
    assert find_by_looks(*after(5, a, b))[0].verdict == "not comparable"


def test_a_run_that_fails_takes_the_word_back_where_the_last_look_decides_nothing():
    """After three runs a is faster. Then b is fast once, so that the last look alone finds no difference."""
    a, b = cells("a", 100, CALM), cells("b", 110, CALM[::-1])
    a[3], b[4] = changed(a[3], validity=DIED), changed(b[4], ttft_ms={"p50": 50.0})
    rows, rules = after(5, a, b)
    (one,) = find_by_looks(rows, rules)
    assert (one.verdict, one.failed, one.measured) == ("not enough runs", (1, 0), (5, 5))
    assert [here.line for here in compare([*a[:5], *b[:5]], rules).rankings] == ["b ? a (1 of 5 failed)"]


def test_a_rank_line_counts_the_runs_that_failed_after_the_word():
    """Of the slower one, whose word stays."""
    a, b = cells("a", 100, CALM), cells("b", 110, CALM[::-1])
    b[3] = changed(b[3], validity=DIED)
    rows, rules = after(5, a, b)
    (one,) = find_by_looks(rows, rules)
    assert (one.verdict, one.runs, one.failed, one.measured) == ("faster", (3, 3), (0, 1), (5, 5))
    assert [here.line for here in compare([*a[:5], *b[:5]], rules).rankings] == ["a > b (1 of 5 failed)"]


def test_a_rank_line_counts_all_runs_left_out_where_it_counts_those_that_failed():
    """After four runs a is faster. Then one more of a is unsteady, and one of b fails."""
    a, b = cells("a", 100, CALM), cells("b", 110, CALM[::-1])
    a[1], a[5] = (changed(a[place], validity=UNSTEADY) for place in (1, 5))
    b[6] = changed(b[6], validity=DIED)
    rows, rules = after(7, a, b)
    (one,) = find_by_looks(rows, rules)
    assert (one.verdict, one.failed, one.measured) == ("faster", (0, 1), (7, 7))
    (ranking,) = compare([*a[:7], *b[:7]], rules).rankings
    assert "2 of 7 runs left out" in ranking.line


def test_between_two_looks_nothing_is_decided():
    """Of a run that was cut short after six repeats: the words are those of the look after five."""
    a, b = cells("a", 100, WILD), cells("b", 104, CALM)
    rows = after(6, a, b)[0]
    at_five = find_by_looks(*after(5, a, b))
    assert find_by_looks(rows, replace(RULES, last_look=5)) == at_five
    assert at_five[0].runs == (5, 5)


def test_a_look_asks_for_more_than_a_fixed_number_would():
    a, b = cells("a", 100, (2, -2, 1)), cells("b", 110, (-1, 1, 2))
    fixed = find(after(3, a, b)[0], replace(RULES, looks=()))[0]
    looked = find_by_looks(*after(3, a, b))[0]
    assert looked.p_holm == pytest.approx(fixed.p_holm)
    assert looked.ratio.low < fixed.ratio.low < fixed.ratio.high < looked.ratio.high


@pytest.mark.parametrize("p50", [None, 0.0])
def test_a_pair_without_a_figure_keeps_no_run_going(p50):
    a, b = cells("a", 100, CALM), cells("b", 100, CALM)
    b = [changed(one, ttft_ms={"p50": p50}) for one in b]
    found = take_look(*after(3, a, b))
    assert (found.hopeless, found.undecided) == (1, ())


def test_a_percentile_that_runs_are_too_short_for_may_come_with_more():
    rules = replace(RULES, primary="ttft_ms.p99", metrics=("ttft_ms.p99",))
    both = [*cells("a", 100, CALM[:3]), *cells("b", 100, CALM[:3])]
    both = [changed(one, ttft_ms={"p99": None}) for one in both]
    rows = rows_of(both, {one.cell: {"ttft_ms": np.full(30, 100.0)} for one in both})
    assert len(take_look(rows, replace(rules, last_look=3)).undecided) == 1


def test_refused_pairs_keep_no_run_going_and_are_told():
    a, b = cells("a", 100, CALM), cells("b", 100, CALM, validity=DIED)
    found = take_look(*after(3, a, b))
    assert (found.not_comparable, found.undecided) == (1, ())
    assert found.words == "decided 0 of 1 pairs, 1 not comparable"


def test_a_summary_has_the_words_of_its_looks_and_says_at_which_level():
    a, b = cells("a", 100, CALM[:4]), cells("b", 150, CALM[:4])
    found = compare([*a, *b], replace(RULES, last_look=4))
    assert found.comparison[0].runs == (3, 3)
    assert found.verdict_rules.look_alpha == pytest.approx(0.01)
    assert found.verdict_rules.looks == (3, 4, 5, 7, 10)
