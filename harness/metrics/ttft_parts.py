"""The mean time to the first token in parts, by the histograms of the engine itself."""

import numpy as np

from harness.metrics.view import CellView, Figures, Rows
from harness.model import HistogramIncrease
from harness.model.machine import TtftParts
from harness.records.layout import UNKNOWN, Outcome


def compute(cell: CellView) -> Figures:
    """None where the engine keeps no such histogram, or has other requests in it than were answered."""
    shapes = cell.facts.server_histograms or {}
    engine, queue = shapes.get("ttft"), shapes.get("queue")
    answered = whole(cell)
    if engine is None or not engine.count:
        return Figures(ttft_parts=None)
    if engine.count != len(answered):
        why = f"the engine counted {engine.count:g} first tokens, and {len(answered)} requests were answered"
        return Figures({"ttft_parts": why}, ttft_parts=None)
    client_ms, engine_ms = client_ttft_ms(answered), mean_ms(engine)
    assert engine_ms is not None
    queue_ms = mean_ms(queue) if queue is not None and queue.count == engine.count else None
    parts = TtftParts(
        client_ms=client_ms,
        queue_ms=queue_ms,
        engine_ms=engine_ms - (queue_ms or 0.0),
        rest_ms=client_ms - engine_ms,
    )
    return Figures(ttft_parts=parts)


def whole(cell: CellView) -> Rows:
    """Requests that were answered, the warm-up's too, which an engine counts like all others."""
    rows = cell.requests
    answered: Rows = rows[(rows["outcome"] == Outcome.OK) & (rows["first_text_ns"] != UNKNOWN)]
    return answered


def client_ttft_ms(answered: Rows) -> float:
    """Mean from the send: an engine does not know when a request was meant to leave."""
    return float(np.mean((answered["first_text_ns"] - answered["sent_ns"]) / 1e6))


def mean_ms(increase: HistogramIncrease | None) -> float | None:
    return 1e3 * increase.sum / increase.count if increase is not None and increase.count else None
