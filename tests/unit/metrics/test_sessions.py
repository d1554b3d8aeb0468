"""Recorded sessions whose times can be worked out on paper."""

import pytest

from harness.metrics import sessions
from harness.metrics.classes import by_class, compute
from harness.records.layout import Outcome, Phase
from harness.records.request_table import PREVIOUS, RequestTable
from harness.summary import view_of
from tests.factories.recorded import facts, records

MS = 1_000_000


def asked(*calls):
    """Of each call: session, turn, tool wait, think wait, kept, own tokens."""
    return RequestTable.of(
        (
            ((9, own, session, turn, 0, -1, -1, tool * MS, think * MS, 1, kept), "", (), PREVIOUS)
            for session, turn, tool, think, kept, own in calls
        ),
        [],
    )


def figures(requested, *rows):
    return sessions.compute(view_of(records(*rows), facts(), requested))


TWO = asked((0, 0, 0, 0, 0, 100), (0, 1, 30, 0, 100, 50), (0, 2, 30, 0, 100, 90), (0, 3, 0, 40, 150, 400))


def test_a_session_lasts_to_its_last_call_and_each_moment_is_the_models_a_tools_or_a_persons():
    """Two calls after tools overlap; a person's wait comes last. In all 300 ms: 190 the model's."""
    made = figures(
        TWO,
        {"sent": 0, "texts": [50, 100]},
        {"sent": 130, "texts": [150, 180]},
        {"sent": 140, "texts": [170, 200]},
        {"sent": 270, "texts": [280, 300]},
    )
    assert made.session_ms.mean == 300
    assert made.model_time_share == pytest.approx((100 + 70 + 30) / 300)
    assert made.tool_time_share == pytest.approx(30 / 300)
    assert (made.sessions.planned, made.sessions.ended, made.sessions.failed, made.sessions.cut) == (
        1,
        1,
        0,
        0,
    )


def test_what_the_client_held_back_is_not_the_models_time():
    """Due at 40 ms and sent at 60: of the 140 ms to the end the model has 120."""
    made = figures(asked((0, 0, 0, 0, 0, 100)), {"intended": 40, "sent": 60, "texts": [100, 180]})
    assert made.session_ms.mean == 140
    assert made.model_time_share == pytest.approx(120 / 140)


def test_a_failed_call_makes_its_session_endless_and_one_that_is_not_over_is_cut():
    calls = [(session, turn, 10 * turn, 0, 0, 9) for session in range(7) for turn in range(2)]
    rows = [{"sent": 10 * i, "texts": [10 * i + 5]} for i in range(13)]  # the last call was never due
    rows[3]["outcome"] = Outcome.RESET
    made = figures(asked(*calls), *rows)
    assert (made.sessions.planned, made.sessions.ended, made.sessions.failed, made.sessions.cut) == (
        7,
        5,
        1,
        1,
    )
    assert made.session_ms.mean == 15
    assert made.session_ms.p50 == 15
    assert made.session_ms.p90 is None
    assert made.nulls["session_ms.p90"] == "6 samples; p90 needs 29"


def test_sessions_that_were_never_begun_are_cut_and_counted():
    calls = [(session, turn, 10 * turn, 0, 0, 9) for session in range(4) for turn in range(2)]
    made = figures(asked(*calls), *({"sent": 10 * i, "texts": [10 * i + 5]} for i in range(3)))
    counts = made.sessions
    assert (counts.planned, counts.ended, counts.cut, counts.not_begun) == (4, 1, 3, 2)


def test_the_mean_of_calls_is_of_the_sessions_whose_times_count():
    """One of three calls failed in its second, one of two ended, and one of four was cut."""
    sizes = (3, 2, 4)
    calls = [(session, turn, 0, 0, 0, 9) for session, size in enumerate(sizes) for turn in range(size)]
    rows = [{"sent": 10 * i, "texts": [10 * i + 5]} for i in range(2)]
    rows[1]["outcome"] = Outcome.RESET
    late = [{"sent": None}, *({"sent": 10 * i, "texts": [10 * i + 5]} for i in range(3, 6))]
    late[0]["outcome"] = Outcome.CANCELLED
    assert figures(asked(*calls), *rows, *late).sessions.calls_mean == 2.5


def test_where_every_session_failed_no_time_is_shared_out():
    made = figures(asked((0, 0, 0, 0, 0, 9)), {"sent": 0, "texts": [5], "outcome": Outcome.RESET})
    assert (made.model_time_share, made.tool_time_share) == (None, None)
    assert made.nulls["model_time_share"] == made.nulls["tool_time_share"] == "no session came to its end"


def test_sessions_of_the_warm_up_are_not_counted():
    calls = [(session, turn, 10, 0, 0, 9) for session in range(2) for turn in range(2)]
    rows = [{"sent": 10 * i, "texts": [10 * i + 5]} for i in range(4)]
    for row in rows[:2]:
        row["phase"] = Phase.WARMUP
    assert figures(asked(*calls), *rows).sessions.planned == 1


def test_calls_are_looked_at_by_depth():
    rows = [{"sent": 10 * i, "texts": [10 * i + 5], "prompt": 100, "cached": 10 * i} for i in range(4)]
    view = view_of(records(*rows), facts(), TWO)
    found, _ = by_class("by_depth", view, TWO)
    assert {name: one.requests for name, one in found.items()} == {"128": 1, "256": 2, "1k": 1}
    assert found["1k"].cached_share == pytest.approx(0.3)
    of_the_cell = compute(view)
    assert of_the_cell.by_depth == found
    assert list(of_the_cell.by_turn) == ["1", "2", "3", "4"]


def test_other_workloads_have_none():
    made = figures(RequestTable.of([((9, 9), "", ())], []), {"sent": 0, "texts": [5]})
    assert made.session_ms is None
    assert made.nulls["session_ms"] == "no recorded sessions were replayed"
