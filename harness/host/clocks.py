"""Another clock of this machine, read together with CLOCK_MONOTONIC."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Reading(NamedTuple):
    at_ns: int  # on CLOCK_MONOTONIC
    value_ns: int  # on the other clock
    width_ns: int  # between the reads of CLOCK_MONOTONIC around it


def tightest(clock: Callable[[], int], tries: int, enough_ns: int = 0) -> Reading:
    """Returns the reading in which least came in between, of so many, or the first below `enough_ns`.

    The CPU may be taken away between two reads.
    """
    best = _read(clock)
    for _ in range(tries - 1):
        if best.width_ns < enough_ns:
            break
        best = min(best, _read(clock), key=lambda reading: reading.width_ns)
    return best


def _read(clock: Callable[[], int]) -> Reading:
    before, value, after = time.monotonic_ns(), clock(), time.monotonic_ns()
    return Reading((before + after) // 2, value, after - before)
