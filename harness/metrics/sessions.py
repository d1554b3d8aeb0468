"""Recorded sessions as a whole: how long each took to its last call, and where that time went."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics import in_flight
from harness.metrics.distribution import latency_stats
from harness.metrics.view import CellView, Figures
from harness.model import SessionCounts
from harness.records.layout import Outcome, Phase
from harness.records.request_table import RequestTable

_NO_SESSIONS = "no recorded sessions were replayed"
_NONE_WHOLE = "no session came to its end"
OF_SESSIONS = ("session_ms", "model_time_share", "tool_time_share")


@dataclass(frozen=True, slots=True)
class Spent:
    """Times of one session that came to its end, ns."""

    whole: int
    model: int  # at least one of its calls in flight
    tools: int  # none in flight, and the next one brings what a tool gave


def compute(cell: CellView) -> Figures:
    if cell.requested is None or not cell.requested.has_calls():
        return Figures(dict.fromkeys(OF_SESSIONS, _NO_SESSIONS), sessions=None, **dict.fromkeys(OF_SESSIONS))
    spent, counts = of_sessions(cell, cell.requested)
    times_ms = np.array([session.whole / 1e6 for session in spent] + [np.inf] * counts.failed)
    stats, reasons = latency_stats(times_ms)
    nulls = {f"session_ms.{key}": reason.replace("requests", "sessions") for key, reason in reasons.items()}
    total = sum(session.whole for session in spent)
    if not total:
        nulls |= dict.fromkeys(OF_SESSIONS[1:], _NONE_WHOLE)
    return Figures(
        session_ms=stats,
        model_time_share=sum(session.model for session in spent) / total if total else None,
        tool_time_share=sum(session.tools for session in spent) / total if total else None,
        sessions=counts,
        nulls=nulls,
    )


def of_sessions(cell: CellView, requested: RequestTable) -> tuple[list[Spent], SessionCounts]:
    """The measured sessions: those of which no call is a warm-up."""
    ids = requested.numbers["session"]
    warm = 1 + int(cell.requests["seq"][cell.requests["phase"] == Phase.WARMUP].max(initial=-1))
    named, first, sizes = np.unique(ids, return_index=True, return_counts=True)
    planned = {
        int(session): int(size) for session, at, size in zip(named, first, sizes, strict=True) if at >= warm
    }
    rows = cell.requests[cell.requests["phase"] == Phase.MEASURE]
    owner = ids[rows["seq"]]
    order = np.argsort(owner, kind="stable")
    starts, ends = (np.searchsorted(owner[order], list(planned), side) for side in ("left", "right"))
    tools = requested.numbers["tool_ns"] > 0
    spent: list[Spent] = []
    failed = not_begun = 0
    timed: list[int] = []  # calls of each session that ended or failed
    for size, start, end in zip(planned.values(), starts, ends, strict=True):
        calls = rows[order[start:end]]
        not_begun += len(calls) == 0
        bad = ~np.isin(calls["outcome"], (Outcome.OK, Outcome.CANCELLED))
        if bad.any():
            failed += 1
            timed.append(size)
        elif len(calls) == size and (calls["outcome"] == Outcome.OK).all():
            spent.append(_spent(calls, tools[calls["seq"]]))
            timed.append(size)
    counts = SessionCounts(
        planned=len(planned),
        ended=len(spent),
        failed=failed,
        cut=len(planned) - len(spent) - failed,
        not_begun=not_begun,
        calls_mean=sum(timed) / len(timed) if timed else None,
    )
    return spent, counts


def in_flight_share(rows: NDArray[np.void], requested: RequestTable) -> float:
    """The share of the time of sessions, whole or not, in which a call was in flight; 0 without any time."""
    rows = rows[in_flight.held(rows)]
    owner = requested.sessions()[rows["seq"]]
    order = np.argsort(owner, kind="stable")
    _, first = np.unique(owner[order], return_index=True)
    spent = [
        _spent(calls, np.zeros(len(calls), bool)) for calls in np.split(rows[order], first) if len(calls)
    ]
    whole = sum(session.whole for session in spent)
    return sum(session.model for session in spent) / whole if whole else 0.0


def _spent(calls: NDArray[np.void], by_tool: NDArray[np.bool_]) -> Spent:
    """Counts from where the response time of the first call does, to the last end."""
    order = np.argsort(calls["sent_ns"], kind="stable")
    sent, end = calls["sent_ns"][order], calls["end_ns"][order]
    begin = int(calls["start_ns"][order[0]])
    over = np.maximum.accumulate(end)
    idle = np.maximum(sent[1:] - over[:-1], 0)
    tools = int(idle[by_tool[order][1:]].sum())
    whole = int(over[-1]) - begin
    return Spent(whole, whole - int(idle.sum()) - max(int(sent[0]) - begin, 0), tools)
