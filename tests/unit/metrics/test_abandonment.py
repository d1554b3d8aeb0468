"""Users who hang up, of figures that can be worked out on paper: load, and in no latency."""

import pytest

from harness.metrics import abandonment, backlog, counts
from harness.metrics.state import cell_state
from harness.model import UNSET, Abandonment, Summary
from harness.records.layout import Outcome, Phase
from harness.report.findings.notes import notes
from harness.summary import view_of
from harness.validity import Evidence, judge
from tests.factories import documents
from tests.factories.recorded import facts, load, records, summarise_cell

STAYS = {"texts": [100, 110, 120, 130], "tokens": 8}  # two tokens an event
LEFT = {"texts": [200, 210], "tokens": -1, "outcome": Outcome.ABANDONED, "phase": Phase.IMPATIENT}
IN_TIME = {"texts": [300], "tokens": 1, "phase": Phase.IMPATIENT}


def cell(*rows, **changes):
    return view_of(records(*rows), facts(planned=len(rows), **changes), None)


def after(*rows, **changes):
    figures = cell(*rows, **changes).of(abandonment.compute)
    return figures.tokens_after_hang_up, figures.nulls.get("tokens_after_hang_up")


def test_what_was_generated_after_a_hang_up_is_what_the_engine_counts_beyond_what_came():
    """Two answers of 8 tokens, two events of 2 tokens each for the two who left: 24. The engine made 90."""
    tokens, why = after(STAYS, STAYS, LEFT, LEFT, server_counters={"output_tokens": 90.0})
    assert (tokens, why) == (pytest.approx((90 - 24) / 2), None)


@pytest.mark.parametrize(
    ("rows", "changes", "why"),
    [
        ((STAYS, IN_TIME), {}, "nobody hung up"),
        ((STAYS, LEFT), {"server_counters": {}}, "the engine does not count the tokens that it generates"),
        ((STAYS, LEFT), {"counter_restarts": 1}, "the engine restarted"),
        ((STAYS, LEFT, {"outcome": Outcome.TIMEOUT}), {}, "or requests failed"),
        (({**STAYS, "tokens": -1}, LEFT), {}, "the server reports no token counts"),
    ],
)
def test_without_a_count_of_its_own_there_is_none(rows, changes, why):
    tokens, found = after(*rows, **{"server_counters": {"output_tokens": 90.0}, **changes})
    assert tokens is None
    assert why in found


def test_reasoning_that_nobody_sees_may_have_come_before_the_hang_up():
    seen = cell(STAYS, LEFT, server_counters={"output_tokens": 90.0})
    seen.requests["reasoning_tokens"][0] = 4
    assert "keeps reasoning" in seen.of(abandonment.compute).nulls["tokens_after_hang_up"]


def test_impatient_users_are_counted_and_in_no_latency():
    seen = cell(STAYS, LEFT, IN_TIME)
    found = counts.requests_of(seen)
    assert (found.ok, found.failed, found.impatient) == (2, 0, 2)
    assert found.outcomes == {"ok": 2, "abandoned": 1}
    assert seen.measured.tolist() == [True, False, False]
    assert counts.requests_of(cell(STAYS)).impatient is UNSET


@pytest.mark.parametrize(("rows", "needed"), [([STAYS, LEFT, IN_TIME], 90), ([STAYS], 30)])
def test_a_longer_run_is_one_with_those_who_hang_up(rows, needed):
    found = judge(Evidence(cell(*rows), facts(minimum={"seconds": 0, "answers": 30}))).reasons
    hints = {reason.code: reason.hint for reason in found}
    assert hints["too-few-samples"] == hints["too-short"] == f"measure longer: --requests {needed}"


def test_who_hangs_up_is_no_backlog():
    """A request each 100 ms, answered in 50; every second user has left by then."""
    stay = [{"intended": 100 * i, "texts": [100 * i + 50]} for i in range(0, 100, 2)]
    left = [{"intended": 100 * i, **LEFT, "texts": [100 * i + 40]} for i in range(1, 100, 2)]
    rows, rate = [*stay, *left], load("rate", 10, arrival="constant")
    assert cell_state(records(*rows).requests, rate).state == "under load"
    found = backlog.backlog(cell(*rows, load=rate), rate)
    assert found is not None
    assert found.in_system_mean == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize(
    ("other", "kind", "text"),
    [
        (LEFT, "note", "50% of the users hang up after 2 s, as declared: 1 of 2 did"),
        (IN_TIME, "warning", "nobody hung up: 50% of the users hang up after 2 s, and each of their answers"),
    ],
)
def test_a_run_in_which_nobody_hung_up_warns_of_it(other, kind, text):
    users = documents.changed(load("concurrency", 4), abandonment=Abandonment(share=0.5, after_s=2.0))
    cell = summarise_cell(records(STAYS, other), facts(planned=2, load=users), None)
    found = notes(documents.made(Summary, state="complete", cells=[cell]))
    assert [note.kind for note in found if text in note.text] == [kind]
