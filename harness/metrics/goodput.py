"""Requests that kept to the limits of the scenario: how many, at which rate, and whether enough did."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.metrics import latency
from harness.metrics.throughput import Window
from harness.record import UNKNOWN, Outcome

Slo = Mapping[str, Mapping[str, float]]  # latency → share → limit in ms
Floats = NDArray[np.float64]


def _tpot_ms(requests: NDArray[np.void]) -> Floats:
    """One per measured request: endless where there was no answer, 0 where it had no second token, NaN
    where its tokens were not counted."""
    rows = requests[latency.measured(requests)]
    tokens = rows["output_tokens"]
    spans = (rows["last_text_ns"] - rows["first_text_ns"]) / 1e6 / np.maximum(tokens - 1, 1)
    known = np.where(tokens == UNKNOWN, np.nan, np.where(tokens < 2, 0.0, spans))
    return np.where(rows["outcome"] == Outcome.OK, known, np.inf)


_LATENCIES: Mapping[str, Callable[[NDArray[np.void]], Floats]] = {
    "ttft_ms": latency.ttft_ms,
    "ttft_service_ms": latency.ttft_service_ms,
    "tpot_ms": _tpot_ms,
    "e2e_ms": latency.e2e_ms,
}


def goodput(
    requests: NDArray[np.void], slo: Slo, window: Window | None
) -> tuple[dict[str, Any] | None, float | None]:
    """The `slo` object of a cell in summary.json, and good requests per second of the window.

    A request is good when it was answered and each of its latencies is within that latency's loosest limit.
    Both are None without limits, without a measured request, or where a latency is not known.
    """
    rows = requests[latency.measured(requests)]
    values = {name: _LATENCIES[name](requests) for name in slo}
    if not slo or not len(rows) or any(np.isnan(found).any() for found in values.values()):
        return None, None
    limits = [
        _limit(name, share, limit_ms, values[name])
        for name, asked in slo.items()
        for share, limit_ms in asked.items()
    ]
    good = rows["outcome"] == Outcome.OK
    for name, asked in slo.items():
        good &= values[name] <= max(asked.values())
    made = {
        "limits": limits,
        "met": all(limit["met"] for limit in limits),
        "good": int(good.sum()),
        "of": len(rows),
        "attainment": float(good.mean()),
        "good_token_share": _token_share(rows, good),
    }
    if window is None or window.seconds <= 0:
        return made, None
    inside = good & (rows["end_ns"] > window.start_ns) & (rows["end_ns"] <= window.end_ns)
    return made, int(inside.sum()) / window.seconds


def _token_share(rows: NDArray[np.void], good: NDArray[np.bool_]) -> float | None:
    """Of the output tokens that were answered, those of good requests; None where they were not counted."""
    answered = rows["outcome"] == Outcome.OK
    tokens = rows["output_tokens"]
    if (tokens[answered] == UNKNOWN).any() or not tokens[answered].sum():
        return None
    return float(tokens[good].sum() / tokens[answered].sum())


def _limit(name: str, share: str, limit_ms: float, values: Floats) -> dict[str, Any]:
    within = float((values <= limit_ms).mean())
    return {
        "metric": name,
        "share": share,
        "limit_ms": limit_ms,
        "within": within,
        "met": within >= (1.0 if share == "max" else float(share.removeprefix("p")) / 100),
    }
