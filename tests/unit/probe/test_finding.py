"""What a probe concludes from an answer, without a server."""

import pytest

from harness.probe.exchange import Seen
from harness.probe.finding import held
from harness.probe.shapes import TRIALS
from harness.probe.traps import _in_bursts


@pytest.mark.parametrize(
    ("declared", "seen", "holds", "said"),
    [
        (True, True, True, ("yes", "yes")),
        (False, True, False, ("no", "yes")),
        ("last", "each", False, ("last", "each")),
        (None, True, None, ("", "yes")),
        (True, None, None, ("yes", "")),
    ],
)
def test_a_finding_holds_where_the_words_are_equal(declared, seen, holds, said):
    found = held("usage", declared, seen, then="set it")
    assert (found.holds, (found.declared, found.seen)) == (holds, said)
    assert found.then == ("set it" if holds is False else "")
    assert found.matters is (holds is False)


def test_more_is_said_next_to_what_was_seen_and_a_difference_may_not_matter():
    found = held("usage", "last", "each", more="3 blocks", matters=False)
    assert found.seen == "each, 3 blocks"
    assert not found.matters


@pytest.mark.parametrize(
    ("shape", "fits", "unfit"),
    [
        ("json_schema", '{"colour": "teal", "calm": true}', '{"colour": "teal", "calm": "yes"}'),
        ("json_schema", '{"calm": false, "colour": "ochre"}', '{"colour": "ochre", "calm": true, "more": 1}'),
        ("json_object", '{"any": 1}', "[1]"),
        ("json_object", "{}", '{"cut'),
        ("regex", " ABC-1234 ", "ABC-12345"),
        ("choice", "zebra-7", "zebra-8"),
        ("grammar", "<123>", "<12>"),
    ],
)
def test_an_answer_fits_its_constraint_or_does_not(shape, fits, unfit):
    assert TRIALS[shape].fits(fits)
    assert not TRIALS[shape].fits(unfit)
    assert not TRIALS[shape].fits("A poem about the sea.")


def test_a_cut_answer_is_known_by_how_it_begins_where_its_end_may_be_far():
    assert TRIALS["json_schema"].begins('\n {"col')
    assert not TRIALS["json_schema"].begins("The {")
    assert not TRIALS["choice"].begins("zebra-7")


def came(*gaps_s):
    at = [sum(gaps_s[:count]) for count in range(len(gaps_s) + 1)]
    return Seen(200, text_s=tuple(at))


@pytest.mark.parametrize(
    ("gaps_s", "bursts"),
    [
        ([0.01] * 8, ""),
        ([0.01] * 7, None),  # too few to tell
        ([0.001] * 20, None),  # quicker than a client wakes up
        ([0.04, 0.0, 0.0, 0.0] * 3, "9 of 12 gaps are of 0, the longest of 40 ms"),
        ([0.01] * 8 + [0.0] * 3, ""),  # 3 of 11 may be the client's
    ],
)
def test_events_that_come_in_bursts_are_told_from_a_late_client(gaps_s, bursts):
    assert _in_bursts(came(*gaps_s)) == bursts


def test_times_of_an_answer():
    seen = came(0.1, 0.3)
    assert (seen.ttft_s, seen.answer_s) == (0, 0.4)
    assert seen.gaps_s == [pytest.approx(0.1), pytest.approx(0.3)]
    assert Seen(0).tpot_s == Seen(0).ttft_s == 0
    assert not Seen(200, error="cut").ok
    assert not Seen(404).ok
