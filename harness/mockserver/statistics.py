"""Statistics of the requests that the ledger keeps: a client should find the same."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.mockserver.ledger import OUTCOMES, Ledger


def document(ledger: Ledger) -> dict[str, object]:
    return {"statistics": statistics(ledger), "records": [record.as_json() for record in ledger.records]}


def statistics(ledger: Ledger) -> dict[str, object]:
    """Statistics of the requests that are kept, and counts of those that are not.

    Latencies are of complete answers only, from received; ITL is between text events, pooled.
    """
    records = ledger.records
    outcomes = [record.outcome for record in records]
    whole = [record for record in records if record.outcome == "complete" and record.write_ns]
    received = np.array([record.received_ns for record in whole], np.int64)
    first = np.array([record.write_ns[0] for record in whole], np.int64)
    last = np.array([record.write_ns[-1] for record in whole], np.int64)
    tokens = np.array([record.tokens for record in whole], np.int64)
    streamed = last > first
    gaps = [np.diff(np.asarray(record.write_ns)) for record in whole]
    late = [np.asarray(record.write_ns) - np.asarray(record.due_ns) for record in whole]
    return {
        "requests": len(records),
        **{outcome: outcomes.count(outcome) for outcome in OUTCOMES},
        "tokens": sum(record.tokens for record in records),
        "ttft_ms": _summary(first - received, 1e6),
        "itl_ms": _summary(_joined(gaps), 1e6),
        "tpot_ms": _summary((last - first)[streamed] / (tokens[streamed] - 1), 1e6),
        "e2e_ms": _summary(last - received, 1e6),
        "schedule_error_us": _summary(_joined(late), 1e3),
        "read_lag_us": _summary(np.array([r.read_ns - r.received_ns for r in whole], np.int64), 1e3),
        "dropped": ledger.dropped,
        "blocked_writes": ledger.blocked_writes,
    }


def _joined(parts: Iterable[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _summary(values: np.ndarray[Any, Any], unit_ns: float) -> dict[str, float | int]:
    if not len(values):
        return {"n": 0}
    scaled = values / unit_ns
    quantiles = {f"p{q}": float(np.percentile(scaled, q)) for q in (50, 90, 99)}
    return {
        "n": len(scaled),
        "mean": float(scaled.mean()),
        "min": float(scaled.min()),
        **quantiles,
        "max": float(scaled.max()),
    }
