"""Prefix-cache hit rate: cached over prompt tokens, and where the figure comes from."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import answered
from harness.records.layout import UNKNOWN


def hit_rate(
    requests: NDArray[np.void], counters: Mapping[str, float] | None
) -> tuple[float | None, str | None]:
    """From the usage blocks of measured answers, else from the engine's counters over the whole cell.

    `counters` are differences over the cell; `prompt_tokens` includes the cached ones.
    """
    rows = requests[answered(requests)]
    if len(rows) and (rows["cached_tokens"] != UNKNOWN).all() and rows["prompt_tokens"].sum() > 0:
        return float(rows["cached_tokens"].sum() / rows["prompt_tokens"].sum()), "usage"
    if counters and counters.get("prompt_tokens") and "cached_prompt_tokens" in counters:
        return counters["cached_prompt_tokens"] / counters["prompt_tokens"], "counters"
    return None, None
