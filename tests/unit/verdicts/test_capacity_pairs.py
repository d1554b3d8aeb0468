"""Which of two backends carries more within the limits, by the intervals of their capacities."""

import pytest

from harness.model import Capacity, TestedLoad
from harness.report.findings.capacity_words import verdict_words
from harness.verdicts.capacity_pairs import capacity_pair, capacity_pairs
from tests.factories.documents import changed, made
from tests.unit.verdicts.test_pairs import cells


def found(label, low, value, high, *, kind="rate", kept_by_search=(1,), spoiled=()):
    tested = [
        {"value": load, "runs": 1, "kept": 0, "attainment": None, "requests_per_s": None, "saturated": False,
         "why": "client-busy", "spoiled": True} for load in spoiled
    ]  # fmt: skip
    return Capacity(
        label=label,
        kind=kind,
        value=value,
        interval=(low, value, high),
        searches=3,
        tested=tuple(made(TestedLoad, **load) for load in tested),
        saturated_from=None,
        kept_by_search=kept_by_search,
    )


FAST, SLOW = found("vllm", 14, 15, 16), found("tgi", 9, 10, 10.5)
OPEN = found("vllm", 64, 64, None)  # all that was tried
NONE = found("tgi", None, None, 1.2)  # not even the lowest load


MORE, LESS, OPEN_WORDS = (
    "vllm carries more than tgi",
    "tgi carries less than vllm",
    "undecided whether vllm carries more or less than tgi",
)


@pytest.mark.parametrize(
    ("a", "b", "verdict", "ratio", "words"),
    [
        (FAST, SLOW, "more", (14 / 10.5, 1.5, 16 / 9), f"{MORE}: 1.5 times the load (1.33 to 1.78)"),
        (SLOW, FAST, "fewer", (9 / 16, 10 / 15, 10.5 / 14), f"{LESS}: 0.667 times the load (0.562 to 0.75)"),
        (
            FAST,
            found("tgi", 13.8, 14, 14.5),
            "undecided",
            (14 / 14.5, 15 / 14, 16 / 13.8),
            f"{OPEN_WORDS}: 1.07 times the load (0.966 to 1.16)",
        ),
        (OPEN, SLOW, "more", (64 / 10.5, None, None), f"{MORE}: at least 6.1 times the load"),
        (
            OPEN,
            found("tgi", 64, 64, None),
            "undecided",
            (None, None, None),
            f"{OPEN_WORDS}: the loads that were tried do not tell",
        ),
        (FAST, NONE, "more", (14 / 1.2, None, None), f"{MORE}: at least 11.7 times the load"),
        (NONE, FAST, "fewer", (None, None, 1.2 / 14), f"{LESS}: at most 0.0857 times the load"),
    ],
)
def test_intervals_that_do_not_meet_are_a_verdict(a, b, verdict, ratio, words):
    pair = capacity_pair(a, b, None)
    assert pair.verdict == verdict
    assert pair.ratio == pytest.approx(ratio)
    assert verdict_words(pair, a.label, b.label) == words


def test_intervals_that_nearly_meet_are_none():
    """2% apart is the smallest difference that counts."""
    assert capacity_pair(found("a", 10.19, 11, 12), found("b", 8, 9, 10), None).verdict == "undecided"
    assert capacity_pair(found("a", 10.21, 11, 12), found("b", 8, 9, 10), None).verdict == "more"


def slots(label, low, value, high):
    return found(label, low, value, high, kind="concurrency")


@pytest.mark.parametrize(
    ("a", "b", "verdict", "ratio"),
    [
        ((4, 4, 5), (2, 2, 4), "more", (4 / 3, 2.0, 2.5)),
        ((2, 2, 4), (4, 4, 5), "fewer", (2 / 5, 0.5, 3 / 4)),
        ((2, 2, 3), (1, 1, 2), "more", (2.0, 2.0, 3.0)),
        ((3, 3, 4), (2, 2, 3), "more", (1.5, 1.5, 2.0)),
        ((24, 24, 25), (23, 23, 24), "undecided", (1.0, 24 / 23, 25 / 23)),
        ((4, 4, 5), (3, 3, 4), "undecided", (1.0, 4 / 3, 5 / 3)),
        ((3, 4, 5), (2, 2, 4), "undecided", (3 / 4, 2.0, 2.5)),
    ],
)
def test_whole_capacities_may_touch_if_they_are_far_apart(a, b, verdict, ratio):
    """The high end is the first load that is too much: a gate passed 4 slots that became 2."""
    pair = capacity_pair(slots("new", *a), slots("old", *b), None)
    assert (pair.verdict, pair.ratio) == (verdict, pytest.approx(ratio))


def test_rates_that_touch_are_undecided():
    assert capacity_pair(found("a", 10, 11, 12), found("b", 6, 7, 10), None).verdict == "undecided"


def test_few_searches_are_no_verdict():
    few = changed(FAST, searches=2)
    why = {capacity_pair(a, b, None).why for a, b in ((few, SLOW), (SLOW, few))}
    assert why == {"2 searches on one side, 3 are needed"}
    both = {capacity_pair(a, changed(SLOW, searches=1), None).why for a in (few, FAST)}
    assert both == {"1 and 2 searches, 3 are needed", "1 search on one side, 3 are needed"}
    assert capacity_pair(few, few, None).why == "2 searches on each side, 3 are needed"
    pair = capacity_pair(few, SLOW, None)
    assert (pair.verdict, pair.ratio) == ("undecided", (pytest.approx(14 / 10.5), 1.5, pytest.approx(16 / 9)))
    assert verdict_words(pair, "vllm", "tgi") == (
        f"{OPEN_WORDS}: 1.5 times the load (1.33 to 1.78); 2 searches on one side, 3 are needed"
    )


def test_a_capacity_that_only_the_client_bounded_may_be_higher():
    spoiled = found("tgi", 9, 10, 10.5, spoiled=(11,))
    assert capacity_pair(FAST, spoiled, None).verdict == "undecided"
    assert capacity_pair(spoiled, FAST, None).ratio == (pytest.approx(9 / 16), None, None)


def test_a_search_without_an_answer_is_the_reason():
    pair = capacity_pair(found("vllm", None, None, None), SLOW, None)
    assert (pair.verdict, pair.why) == ("undecided", "a search has no answer")
    assert capacity_pair(NONE, SLOW, None).why == ""  # below the lowest load tried: an answer


def test_a_capacity_of_before_long_probes_bounds_nothing():
    assert capacity_pair(FAST, found("tgi", 1, 1, 2, kept_by_search=None), None).ratio == (None, None, None)


@pytest.mark.parametrize(("backends", "pairs"), [(50, 1225), (51, 0)])
def test_more_backends_than_verdicts_compare_have_no_pairs(backends, pairs):
    assert len(capacity_pairs([found(f"e{number}", 9, 10, 11) for number in range(backends)], [])) == pairs


def test_unlike_searches_are_not_comparable():
    pair = capacity_pair(FAST, found("tgi", 9, 10, 11, kind="concurrency"), None)
    assert (pair.verdict, pair.ratio) == ("not comparable", (None, None, None))
    assert pair.why == "one was searched by rate, the other by concurrency"
    assert capacity_pair(FAST, SLOW, "other weights").why == "other weights"


def test_a_pair_of_a_run_is_refused_for_unequal_work_and_not_for_how_many_requests_its_search_sent():
    fast = [changed(cell, workload_sha256="more of the same") for cell in cells("vllm", 50)]
    (pair,) = capacity_pairs([FAST, SLOW], [*fast, *cells("tgi", 100)])
    assert pair.verdict == "more"
    other = [changed(cell, conditions={"settings": {"threads": "2"}}) for cell in fast]
    slow = [changed(cell, conditions={"settings": {"threads": "1"}}) for cell in cells("tgi", 100)]
    (pair,) = capacity_pairs([FAST, SLOW], [*other, *slow])
    assert pair.verdict == "not comparable"
    assert "CPU threads: 2 (vllm), 1 (tgi)" in pair.why
