"""Requests in flight at each moment, from their sends and ends, whatever became of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.records.layout import UNKNOWN, Outcome

Floats = NDArray[np.float64]


class Steps(NamedTuple):
    """The number in flight from each time on. A slot that is freed and taken again at one moment counts
    once.
    """

    at_ns: NDArray[np.int64]
    counts: NDArray[np.int64]


def held(requests: NDArray[np.void]) -> NDArray[np.bool_]:
    """Requests that were sent and whose end is known."""
    mask: NDArray[np.bool_] = (requests["sent_ns"] != UNKNOWN) & (requests["end_ns"] != UNKNOWN)
    return mask


def served(requests: NDArray[np.void]) -> NDArray[np.bool_]:
    """Answers of any phase."""
    mask: NDArray[np.bool_] = held(requests) & (requests["outcome"] == Outcome.OK)
    return mask


def steps(requests: NDArray[np.void]) -> Steps:
    rows = requests[held(requests)]
    at_ns = np.concatenate([rows["end_ns"], rows["sent_ns"]])
    change = np.repeat(np.array([-1, 1]), len(rows))
    order = np.lexsort((change, at_ns))
    return Steps(at_ns[order], np.cumsum(change[order]))


def overlap_ns(requests: NDArray[np.void], start_ns: int, end_ns: int) -> Floats:
    """The time that each request was in flight between the two moments; 0 where that is not known."""
    within = np.minimum(requests["end_ns"], end_ns) - np.maximum(requests["sent_ns"], start_ns)
    return np.where(held(requests), np.maximum(within, 0), 0).astype(np.float64)


def at_once_with(requests: NDArray[np.void], others: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Requests in flight at the same time as any of the `others`, which are a mask of them."""
    sent = requests[others & held(requests)]
    begun = np.searchsorted(np.sort(sent["sent_ns"]), requests["end_ns"], side="left")
    ended = np.searchsorted(np.sort(sent["end_ns"]), requests["sent_ns"], side="right")
    return begun > ended


def mean(requests: NDArray[np.void], start_ns: int, end_ns: int) -> float | None:
    """Mean over time; None for an empty stretch."""
    length = end_ns - start_ns
    return float(overlap_ns(requests, start_ns, end_ns).sum()) / length if length > 0 else None


def filled_ns(requests: NDArray[np.void]) -> int:
    """When a closed loop first held as many as in the second half of its sends: all its slots had begun."""
    changes = steps(requests)
    sent = requests["sent_ns"][held(requests)]
    first, last = int(sent.min()), int(sent.max())
    usual = mean(requests, (first + last) // 2, last)
    return first if usual is None else int(changes.at_ns[np.argmax(changes.counts >= usual - 0.5)])


def times_in_system_ns(requests: NDArray[Any]) -> Floats:
    """Times from send to end, of each answer of any phase."""
    rows = requests[served(requests)]
    times: Floats = (rows["end_ns"] - rows["sent_ns"]).astype(np.float64)
    return times
