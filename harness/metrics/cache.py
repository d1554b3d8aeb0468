"""Prefix-cache hit rate: cached over prompt tokens, and where the figure comes from."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import answered
from harness.records.layout import UNKNOWN


def hit_rate(
    requests: NDArray[np.void], counters: Mapping[str, float] | None
) -> tuple[float | None, str | None]:
    """From plausible usage blocks of measured answers, else from the engine's counters over the whole cell.

    `counters` are differences over the cell; `prompt_tokens` includes the cached ones.
    """
    rows = requests[answered(requests)]
    known = len(rows) and (rows["cached_tokens"] != UNKNOWN).all() and rows["prompt_tokens"].sum() > 0
    if known and not len(beyond_prompt(requests)):
        return float(rows["cached_tokens"].sum() / rows["prompt_tokens"].sum()), "usage"
    if counters and counters.get("prompt_tokens") and "cached_prompt_tokens" in counters:
        return counters["cached_prompt_tokens"] / counters["prompt_tokens"], "counters"
    return None, None


def why_unknown(requests: NDArray[np.void]) -> str:
    if len(beyond_prompt(requests)):
        return "the server counts more cached tokens than prompt tokens"
    return "neither usage nor counters report cached tokens"


def counted(requests: NDArray[np.void]) -> NDArray[np.void]:
    """Measured answers whose prompt and cached tokens the server reports."""
    known = (requests["prompt_tokens"] != UNKNOWN) & (requests["cached_tokens"] != UNKNOWN)
    rows: NDArray[np.void] = requests[answered(requests) & known]
    return rows


def beyond_prompt(requests: NDArray[np.void]) -> NDArray[np.void]:
    """Those with more cached tokens than prompt tokens: if there is one, the server's count says nothing."""
    rows = counted(requests)
    beyond: NDArray[np.void] = rows[rows["cached_tokens"] > rows["prompt_tokens"]]
    return beyond
