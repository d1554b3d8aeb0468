"""Latencies of a cell's requests by class: by their kind, and by the turn of their session."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from harness.metrics import latency
from harness.metrics.distribution import describe
from harness.model import ClassStats
from harness.records.layout import UNKNOWN, Records
from harness.records.request_table import RequestTable


def by_kind(records: Records, requested: RequestTable | None) -> dict[str, ClassStats] | None:
    """None for a workload of one kind."""
    if requested is None or len(set(requested.kinds)) < 2:
        return None
    kinds = np.array(requested.kinds, object)[records.requests["seq"]]
    return _by(records, {str(kind): kinds == kind for kind in sorted(set(requested.kinds))})


def by_turn(records: Records, requested: RequestTable | None) -> dict[str, ClassStats] | None:
    """From "1" on; None for requests that stand alone."""
    if requested is None or not requested.has_sessions():
        return None
    turns = requested.numbers["turn"][records.requests["seq"]]
    return _by(records, {str(turn + 1): turns == turn for turn in np.unique(turns).tolist()})


def _by(records: Records, masks: Mapping[str, NDArray[np.bool_]]) -> dict[str, ClassStats]:
    stats = {}
    for name, mask in masks.items():
        rows = records.requests[mask]
        events = records.events[np.isin(records.events["seq"], rows["seq"])]
        part = Records(rows, events, (), (), ())
        answered = rows[latency.answered(rows)]
        stats[name] = ClassStats(
            requests=int(latency.measured(rows).sum()),
            ok=len(answered),
            **{
                metric: describe(values)[0]
                for metric, values in latency.latencies(part).items()
                if metric in ClassStats.__struct_fields__
            },
            cached_share=_cached(answered),
        )
    return stats


def _cached(rows: NDArray[np.void]) -> float | None:
    known = len(rows) and (rows["cached_tokens"] != UNKNOWN).all() and rows["prompt_tokens"].sum() > 0
    return float(rows["cached_tokens"].sum() / rows["prompt_tokens"].sum()) if known else None
