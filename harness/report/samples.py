"""What pictures and tables need of a cell's records, small enough to hold for every cell of a run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import ascending
from harness.metrics.latency import by_arrival, tpot_of_each_ms, values_ms
from harness.metrics.pooled import MOST_VALUES
from harness.metrics.view import RequestView
from harness.model import METRICS
from harness.records.layout import UNKNOWN, Outcome, Records
from harness.store import RunFolder

ANSWERS = 3
DISTRIBUTED = {
    name: metric.charts
    for name, metric in METRICS.items()
    if metric.charts and metric.charts.distribution != "none"
}


@dataclass(frozen=True, slots=True)
class Samples:
    latencies: Mapping[str, NDArray[np.float64]]  # by metric, `_thinned`; infinite where no answer came
    prompt_tokens: NDArray[np.int32]  # of the answers that reported them
    output_tokens: NDArray[np.int32]
    answers: tuple[str, ...]  # of the first measured requests that were answered
    errors: Mapping[str, int]  # error text → how often; that a user hung up is none


def take(records: Records) -> Samples:
    view = RequestView(by_arrival(records))
    return Samples(
        latencies={
            metric: _thinned(values) for metric, values in values_ms(view).items() if metric in DISTRIBUTED
        },
        prompt_tokens=_reported(view.answers["prompt_tokens"]),
        output_tokens=_reported(view.answers["output_tokens"]),
        answers=tuple(records.texts[index] for index in np.flatnonzero(view.answered)[:ANSWERS]),
        errors=Counter(
            error
            for error, outcome in zip(records.errors, records.requests["outcome"], strict=True)
            if error and outcome != Outcome.ABANDONED
        ),
    )


def tpot_ms_by_seq(folder: RunFolder, cell: str) -> NDArray[np.float64]:
    """NaN for a request that does not count, failed, or has no gap between tokens."""
    records, _facts = folder.read_cell(cell)
    view = RequestView(by_arrival(records))
    values = np.full(records.seq_count, np.nan)
    values[view.measured_requests["seq"]] = tpot_of_each_ms(view)
    values[np.isinf(values)] = np.nan
    return values


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keeps MOST_VALUES, evenly by rank, with the least and the largest: gaps would fill the memory."""
    if len(values) <= MOST_VALUES:
        return values
    return ascending(values)[np.linspace(0, len(values) - 1, MOST_VALUES).astype(np.int64)]


def _reported(values: NDArray[np.int32]) -> NDArray[np.int32]:
    known: NDArray[np.int32] = values[values != UNKNOWN]
    return known
