"""The families of metrics fill a cell: each key once, with its type, and each null has a reason."""

from typing import get_type_hints

import pytest

from harness.metrics.families import FAMILIES, figures_of
from harness.metrics.latency import compute as compute_latencies
from harness.metrics.view import CellView, RequestView
from harness.model import METRICS, CellResult, Identity, as_json, from_json
from harness.model.metrics import Measured
from harness.records.layout import Outcome, Phase
from harness.summary.cell import about, summarise_view, view_of
from tests.factories.recorded import facts, records, requested

ROWS = [{"intended": 10 * i, "texts": [10 * i + 5, 10 * i + 8], "prompt": 9} for i in range(4)]


@pytest.mark.parametrize("family", [*FAMILIES, about], ids=lambda family: family.__module__)
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], [], [{"outcome": Outcome.RESET}]], ids=len)
def test_a_family_fills_keys_of_a_cell_with_their_types(family, rows):
    """A cell has types of its own for what it keeps, and takes no others."""
    hints = get_type_hints(CellResult)
    for key, value in family(view_of(records(*rows), facts(), None)).by_key.items():
        assert from_json(as_json({key: value}), dict[str, hints[key]]) == {key: value}


def test_each_key_is_filled_once_and_none_is_left_out():
    cell = view_of(records(*ROWS), facts(), None)
    parts = [*(compute(cell) for compute in FAMILIES), about(cell)]
    filled = [name for part in parts for name in part.by_key]
    assert len(filled) == len(set(filled))
    assert {*filled, *Identity.__struct_fields__, "null_reasons"} == set(CellResult.__struct_fields__)
    assert set(METRICS) == set(Measured.__struct_fields__) - set(Identity.__struct_fields__)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], [], [{"outcome": Outcome.RESET}]], ids=len)
def test_a_metric_without_a_value_has_a_reason(rows):
    cell = summarise_view(view_of(records(*rows), facts(), None))
    unknown = [name for name in METRICS if getattr(cell, name) is None]
    by_metric = {path.partition(".")[0] for path in cell.null_reasons}
    assert set(unknown) <= by_metric


def test_what_a_cell_computes_it_computes_once():
    calls = []

    def counted(cell):
        calls.append(cell)
        return len(cell.requests)

    cell = CellView(records(*ROWS), facts())
    assert (cell.of(counted), cell.of(counted), len(calls)) == (4, 4, 1)
    assert cell.of(compute_latencies) is cell.of(compute_latencies)
    assert figures_of(cell)[0]["ttft_ms"] is cell.of(compute_latencies).ttft_ms


def test_what_counts_is_measured_and_was_not_cancelled_by_us():
    phases = [{"phase": Phase.WARMUP}, {"outcome": Outcome.CANCELLED}, {"outcome": Outcome.RESET}, {}]
    view = RequestView(records(*(ROWS[0] | row for row in phases)))
    assert view.measured.tolist() == [False, False, True, True]
    assert view.answered.tolist() == [False, False, False, True]
    assert (view.measured_requests["seq"].tolist(), view.answers["seq"].tolist()) == ([2, 3], [3])


def test_a_part_has_its_own_events():
    view = RequestView(records(*ROWS))
    part = view.part(view.requests["seq"] == 2)
    assert set(part.records.events["seq"].tolist()) == {2}
    assert len(view.without_events(view.requests["seq"] == 2).records.events) == 0


@pytest.mark.parametrize("api", ["embeddings", "rerank", "transcriptions"])
def test_answers_that_come_whole_have_no_first_token_and_say_so(api):
    """Whatever the stamps are: 8 answers of 50 ms in one piece."""
    rows = [{"intended": 100 * i, "texts": [100 * i + 50], "prompt": 9} for i in range(8)]
    figures, nulls = figures_of(view_of(records(*rows), facts(request={"api": api}), None))
    whole = f"answers of {api} come whole: there is no first token, and none after it"
    for name in ("ttft_ms", "ttft_service_ms", "itl_ms", "tpot_ms"):
        assert set(as_json(figures[name]).values()) == {None}, name
        assert {nulls[f"{name}.{key}"] for key in ("mean", "p50", "p99", "p99_upper")} == {whole}
    assert figures["output_tokens_per_s"] is figures["output_chars_per_s"] is None
    assert nulls["output_tokens_per_s"] == whole
    assert nulls["prefix_cache_hit_rate"] == "neither usage nor counters report cached tokens"
    assert figures["e2e_ms"].p50 == pytest.approx(50)
    assert nulls["e2e_ms.p99"] == "8 samples; p99 needs 299"
    assert figures["requests_per_s"] > 0


@pytest.mark.parametrize("api", ["embeddings", "rerank", "transcriptions"])
def test_answers_that_come_whole_cost_nothing_by_a_token_of_theirs(api):
    """Some servers count tokens of them, and cached tokens of their prompts, which are a figure like any."""
    rows = [
        {"intended": 100 * i, "texts": [100 * i + 50], "tokens": 12, "prompt": 9, "cached": 3}
        for i in range(8)
    ]
    prices = {"currency": "USD", "source": "x", "machine_per_hour": 2.0}
    figures, nulls = figures_of(view_of(records(*rows), facts(request={"api": api}, prices=prices), None))
    whole = f"answers of {api} come whole: there is no first token, and none after it"
    assert figures["cost_per_million_output_tokens"] is None
    assert nulls["cost_per_million_output_tokens"] == whole
    cost = figures["cost"]
    assert cost.per_million_output_tokens is cost.per_million_tokens is cost.output_tokens_per_day is None
    assert cost.per_million_input_tokens > 0
    assert figures["prefix_cache_hit_rate"] == pytest.approx(1 / 3)
    assert {"prefix_cache_hit_rate", "prefix_cache_ideal"}.isdisjoint(nulls)


def test_a_class_of_answers_that_come_whole_lacks_no_first_token():
    """Without text, no first token ever comes; of one class most failed."""
    rows = [
        {"sent": 100 * i, "tokens": 0, **({"outcome": Outcome.RESET} if i % 2 and i < 8 else {})}
        for i in range(12)
    ]
    made = records(*rows)
    made.requests["last_text_ns"] = made.requests["end_ns"] = made.requests["sent_ns"] + 50_000_000
    asked = requested(*((("short", "long")[i % 2], {}) for i in range(12)))
    _, nulls = figures_of(view_of(made, facts(request={"api": "embeddings"}), asked))
    assert nulls["by_kind.long.e2e_ms.p50"] == "4 of 6 requests never got there"
    whole = "answers of embeddings come whole: there is no first token, and none after it"
    assert {why for path, why in nulls.items() if path.startswith("by_kind.short.")} == {whole}
