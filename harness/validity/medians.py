"""Medians of two samples: how far apart chance may leave them, and what a mix of kinds hides in them."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from harness.metrics.view import Floats, RequestView
from harness.validity.rule import Evidence

LEAST_ANSWERS = 30  # for a median with an interval
NOISE_ERRORS = 3.5  # standard errors: one false alarm in some 2,000 comparisons


def finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def chance_apart(slower: Floats, faster: Floats) -> float:
    """How far apart chance may leave the medians of two samples of one distribution, whatever it is.

    The standard errors are of the number of values below a median: where half of the answers come from a
    cache, a median lies on either side of the gap between the two kinds, which no spread of values tells.
    """
    low, middle, _ = _median(slower)
    _, other, high = _median(faster)
    return float(np.hypot(middle - low, high - other))


def _median(values: Floats) -> tuple[float, float, float]:
    """The median with the values NOISE_ERRORS below and above it."""
    ordered, last = np.sort(values), len(values) - 1
    away = NOISE_ERRORS * float(np.sqrt(len(values))) / 2
    low, high = math.floor(last / 2 - away), math.ceil(last / 2 + away)
    return float(ordered[max(low, 0)]), float(np.median(ordered)), float(ordered[min(high, last)])


def compared(
    cell: Evidence, parts: Sequence[RequestView], values: Callable[[RequestView], Floats]
) -> tuple[list[Floats], float | None]:
    """Times of each part of the requests in ms, and None; of several kinds of requests as of_like_kind."""
    if several_kinds(cell):
        return of_like_kind(cell, parts, values)
    return [finite(values(part)) for part in parts], None


def several_kinds(cell: Evidence) -> bool:
    return cell.requested is not None and len(set(cell.requested.kinds)) > 1


def of_like_kind(
    cell: Evidence, parts: Sequence[RequestView], values: Callable[[RequestView], Floats]
) -> tuple[list[Floats], float]:
    """Times of each part of the requests, as shares of what is usual for their kind, and the least usual ms.

    Medians of a mix lie between two kinds, and go with how many of each a part got.
    """
    assert cell.requested is not None
    kinds = [cell.requested.kinds_of(part.requests["seq"]) for part in parts]
    shares: list[list[Floats]] = [[np.zeros(0)] for _ in parts]
    usual: list[float] = []  # of each kind that several parts answered, ms
    for name in set(cell.requested.kinds):
        own = [part.without_events(mine == name) for part, mine in zip(parts, kinds, strict=True)]
        times = [finite(values(part)) for part in own]
        medians = [float(np.median(ms)) for ms in times if len(ms)]
        if len(medians) > 1 and min(medians) > 0:
            usual.append(sum(medians) / len(medians))
            for share, ms in zip(shares, times, strict=True):
                share.append(ms / usual[-1])
    return list(map(np.concatenate, shares)), min(usual, default=1.0)
