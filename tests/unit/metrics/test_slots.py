"""Idle time of slots by hand, and what is said where there is none."""

import pytest

from harness.metrics import slots
from harness.metrics.slots import slot_time
from harness.metrics.view import CellView, RequestView
from harness.records.layout import Phase
from tests.factories.recorded import MS, facts, load, records

# Due, sent, ended: 10 of 100 ms idle, then none of 100, then 30 of 200.
ROWS = [
    {"intended": 0, "sent": 10, "texts": [50, 100]},
    {"intended": 100, "sent": 100, "texts": [150, 200]},
    {"intended": 200, "sent": 230, "texts": [300, 400]},
]


def of(*rows, **point):
    return slots.compute(CellView(records(*rows), facts(load={"kind": "concurrency", "value": 2} | point)))


def test_a_slot_is_idle_from_its_turn_to_the_send():
    found = of(*ROWS, *ROWS)
    assert found.slot_idle_ms.mean == pytest.approx(40 / 3)
    assert found.slot_idle_ms.p50 == pytest.approx(10)
    assert found.slot_idle_share == pytest.approx(40 / 400)
    assert {path for path in found.nulls if path.startswith("slot_idle")} == {
        *("slot_idle_ms.p90", "slot_idle_ms.p95", "slot_idle_ms.p99"),
        *("slot_idle_ms.p90_upper", "slot_idle_ms.p95_upper", "slot_idle_ms.p99_upper"),
    }
    assert found.nulls["slot_idle_ms.p90"] == "6 samples; p90 needs 29"


def test_an_open_loop_says_of_each_figure_that_it_has_no_slots():
    found = of(*ROWS, kind="rate", value=5.0)
    assert (found.slot_idle_ms, found.slot_idle_share, found.synchrony) == (None, None, None)
    names = ("slot_idle_ms", "slot_idle_share", "synchrony")
    assert found.nulls == dict.fromkeys(names, "an open loop has no slots")


def test_a_closed_loop_that_sent_nothing_says_so():
    found = of({"intended": 0, "sent": None}, {**ROWS[0], "phase": Phase.WARMUP})
    assert (found.slot_idle_ms, found.slot_idle_share) == (None, None)
    assert (found.nulls["slot_idle_ms"], found.nulls["slot_idle_share"]) == ("no request was sent",) * 2


def test_connecting_is_no_idle_time_and_none_is_below_zero():
    """Of 10, 0 and 30 ms that they waited to be sent, 4, 7 and 0 went to connecting."""
    made = records(*ROWS)
    made.requests["connect_ns"] = [4 * MS, 7 * MS, 0]
    found = slot_time(RequestView(made), load("concurrency", 2))
    assert found.idle_ms.tolist() == [6, 0, 30]
    assert found.share == pytest.approx(36 / (36 + 90 + 100 + 170))
    assert found.used == pytest.approx(2 * 360 / 396)
