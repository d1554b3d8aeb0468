"""Requests in the system, on arrivals whose queue can be worked out on paper."""

import pytest

from harness.metrics.backlog import backlog
from harness.metrics.view import RequestView
from harness.records.layout import Outcome, Phase
from tests.factories.recorded import load, records

RATE = load("rate", 10.0)


def served(count, service_ms, *, first=0, gap_ms=100, **more):
    """Of a server with one slot, `gap_ms` between arrivals."""
    free, rows = 0, []
    for number in range(first, count):
        due = number * gap_ms
        free = max(free, due) + service_ms
        rows.append({"intended": due, "sent": due, "texts": [free], **more})
    return rows


def test_a_server_that_keeps_up_has_no_more_in_the_system_late_than_early():
    found = backlog(RequestView(records(*served(301, 50))), RATE)
    assert found.probed_s == 30
    assert found.window_s == pytest.approx(29.95)
    assert (found.arrivals, found.answered) == (300, 299)  # the last one is not answered by then
    in_system = (found.in_system_first, found.in_system_mean, found.in_system_last)
    assert in_system == pytest.approx((0.5, 0.5, 0.5), abs=0.01)


def test_one_that_serves_half_of_the_arrivals_gains_a_request_with_every_other():
    found = backlog(RequestView(records(*served(301, 200))), RATE)
    # 5/s too many: over two thirds of the window from the middle of the first third to that of the last.
    assert found.in_system_last - found.in_system_first == pytest.approx(5 * found.window_s * 2 / 3, 0.02)
    assert found.answered == pytest.approx(found.arrivals / 2, abs=1)


def test_an_engine_that_fills_up_is_not_a_queue():
    """Every answer takes 5 s, any number at once: 50 in the system from then on."""
    rows = [{"intended": due, "sent": due, "texts": [due + 5000]} for due in range(0, 30_001, 100)]
    found = backlog(RequestView(records(*rows)), RATE)
    assert found.window_s == 25
    assert [found.in_system_first, found.in_system_last] == pytest.approx([50, 50])


def test_warm_up_is_in_the_system_and_what_we_cancelled_is_not():
    rows = [
        {"intended": 0, "sent": 0, "texts": [60_000], "phase": Phase.WARMUP},
        {"intended": 0, "sent": 0, "outcome": Outcome.CANCELLED},
        *served(301, 50, first=1),
    ]
    assert backlog(RequestView(records(*rows)), RATE).in_system_mean == pytest.approx(1.5, abs=0.01)


def test_a_dropped_request_is_never_in_the_system():
    rows = [*served(301, 50), *({"intended": t, "sent": None, "outcome": Outcome.DROPPED} for t in (5, 10))]
    found = backlog(RequestView(records(*rows)), RATE)
    assert found.in_system_mean == pytest.approx(0.5, abs=0.01)


def test_there_is_none_in_a_closed_loop_or_of_a_single_arrival():
    assert backlog(RequestView(records(*served(9, 50))), load("concurrency", 8)) is None
    assert backlog(RequestView(records(*served(1, 50))), RATE) is None
    assert backlog(RequestView(records(*served(5, 50, gap_ms=0))), RATE) is None
