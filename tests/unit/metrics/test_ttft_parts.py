"""The mean time to the first token in parts, by the engine's own histograms."""

import pytest

from harness.metrics.ttft_parts import compute
from harness.metrics.view import CellView
from harness.records.layout import Phase
from tests.factories.recorded import facts, records
from tests.unit.metrics.test_roles import observed

# The first one is of the warm-up: an engine counts it like the others.
ROWS = [
    {"sent": 100 * n, "texts": [100 * n + ttft, 100 * n + ttft + 20], "phase": phase}
    for n, (ttft, phase) in enumerate([(200, Phase.WARMUP), (230, Phase.MEASURE), (260, Phase.MEASURE)])
]


def found(**histograms):
    return compute(CellView(records(*ROWS), facts(server_histograms=histograms)))


def test_the_parts_add_up_to_what_the_client_saw():
    parts = found(ttft=observed(220, 3), queue=observed(50, 3)).ttft_parts
    assert (parts.client_ms, parts.queue_ms, parts.engine_ms, parts.rest_ms) == pytest.approx(
        (230, 50, 170, 10)
    )


def test_without_a_queue_of_its_own_the_engine_has_it():
    for queue in ({}, {"queue": observed(50, 2)}):
        parts = found(ttft=observed(220, 3), **queue).ttft_parts
        assert parts.queue_ms is None
        assert (parts.engine_ms, parts.rest_ms) == pytest.approx((220, 10))


def test_other_requests_than_those_answered_are_no_part_of_their_mean():
    figures = found(ttft=observed(220, 4))
    assert figures.ttft_parts is None
    assert figures.nulls == {"ttft_parts": "the engine counted 4 first tokens, and 3 requests were answered"}


def test_an_engine_that_counts_none_lacks_no_figure():
    for figures in (found(), found(ttft=observed(0, 0))):
        assert (figures.ttft_parts, figures.nulls) == (None, {})
