"""Which requests have to wait for their adapter, and what that costs, worked out by hand."""

import pytest

from harness.metrics import adapters
from harness.metrics.adapters import loaded
from harness.records.layout import Outcome
from harness.summary import view_of
from tests.factories.recorded import facts, records, requested


def firsts(names, slots):
    named = ["base" if name == "." else name for name in names]
    return "".join("L" if first else "-" for first in loaded(named, slots))


def test_an_adapter_is_loaded_unless_it_is_one_of_the_last_so_many():
    assert firsts("abab", 2) == "LL--"
    assert firsts("abcabc", 2) == "LLLLLL"
    assert firsts("abacab", 2) == "LL-L-L"
    assert firsts("abcabc", 3) == "LLL---"


def test_the_base_model_takes_no_place():
    assert firsts("a.b..a.", 2) == "L-L----"


def cell(*rows, slots=1):
    """Each row: the adapter of a request, when it was sent (None: never), TTFT and the gap after it, ms."""
    asked = requested(*((name, {}) for name, *_ in rows))
    made = [
        {"sent": None, "outcome": Outcome.DROPPED}
        if sent is None
        else {"sent": sent, "texts": [sent + ttft, sent + ttft + gap]}
        for _, sent, ttft, gap in rows
    ]
    values = {} if slots is None else {"lora_slots": slots}
    seen = view_of(records(*made), facts(workload__adapters=2, engine_values=values), asked)
    return seen.of(adapters.compute).adapters


def test_a_swap_costs_what_a_first_token_takes_longer_after_it():
    """a and b are loaded in turns (100 and 140 ms); held adapters take 30 ms, the base model 20."""
    found = cell(
        *(("base", 0, 20, 10), ("a", 100, 100, 12), ("a", 300, 30, 12)),
        *(("b", 500, 140, 12), ("b", 700, 30, 12), ("base", 900, 20, 10)),
    )
    assert (found.count, found.slots, found.swaps) == (2, 1, 2)
    assert found.swap_ms == pytest.approx(120 - 30)
    assert found.ttft_over_base == pytest.approx(1.5)
    assert found.tpot_over_base == pytest.approx(1.2)


def test_where_every_request_swaps_its_wait_stands_for_all():
    found = cell(("base", 0, 20, 10), ("a", 100, 100, 12), ("b", 300, 140, 12))
    assert (found.swaps, found.swap_ms) == (2, None)
    assert found.ttft_over_base == pytest.approx(6)
    assert found.tpot_over_base is None


def test_a_request_that_was_never_sent_loads_nothing():
    found = cell(("base", 0, 20, 10), ("a", 100, 100, 12), ("a", 300, 30, 12), ("a", None, 0, 0))
    assert (found.swaps, found.swap_ms) == (1, pytest.approx(70))


def test_without_the_base_model_there_is_nothing_to_compare_with():
    found = cell(("a", 0, 100, 12), ("a", 200, 30, 12))
    assert (found.ttft_over_base, found.tpot_over_base) == (None, None)
    assert found.swap_ms == pytest.approx(70)


def test_an_engine_that_holds_all_adapters_swaps_none():
    found = cell(("base", 0, 20, 10), ("a", 100, 100, 12), ("b", 300, 140, 12), slots=None)
    assert (found.slots, found.swaps, found.swap_ms) == (None, 0, None)
    assert found.ttft_over_base == pytest.approx(6)


def test_requests_that_cannot_name_an_adapter_have_no_figure_of_it():
    asked = requested(("base", {}), ("a", {}))
    made = records({"texts": [10, 20]}, {"texts": [10, 20]})
    cannot = facts(workload__adapters=2, request={"unsupported": {"lora": "no way to name an adapter"}})
    found = view_of(made, cannot, asked).of(adapters.compute)
    assert found.adapters is None
    assert "all went to the base model" in found.nulls["adapters"]


def test_no_adapter_no_figure():
    seen = view_of(records({"texts": [10]}), facts(), requested(("base", {})))
    assert seen.of(adapters.compute).adapters is None
