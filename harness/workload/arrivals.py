"""When requests leave: offsets from t0 in nanoseconds, computed before the window from a seed. Pure.

Arrivals are drawn at one per unit of time and then laid onto the clock by the inverse of the cumulative
rate, so that every process (constant, Poisson, gamma) goes with every profile (flat, ramp, steps, bursts).
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.spec.scenario import Segment

NS = 1_000_000_000

Process = Literal["constant", "poisson", "gamma"]


class Profile(NamedTuple):
    """How the rate changes over time; at its end the last rate goes on, unless the whole is repeated."""

    segments: Sequence[Segment] = ()
    repeated: bool = False


FLAT = Profile()


def arrivals(
    process: Process,
    rate: float,
    count: int,
    seed: int,
    *,
    burstiness: float = 1.0,
    profile: Profile = FLAT,
) -> NDArray[np.int64]:
    """Ascending offsets."""
    units = _units(process, count, seed, burstiness)
    return np.round(_laid_out(units / rate, profile.segments, profile.repeated) * NS).astype(np.int64)


def replayed(at_ns: NDArray[np.int64], speed: float) -> NDArray[np.int64]:
    """A trace's own times, from its first request on, at a multiple of its pace."""
    return np.round((at_ns - at_ns[:1]) / speed).astype(np.int64)


def paced(times_ns: NDArray[np.int64], seconds: float) -> NDArray[np.int64]:
    """The same arrivals stretched so that the last one is at `seconds`.

    A Poisson process given its count: the rate is the nominal one, not that of a lucky draw.
    """
    return np.round(times_ns * (seconds * NS / max(int(times_ns[-1]), 1))).astype(np.int64)


def think_times(mean_s: float, exponential: bool, count: int, seed: int) -> NDArray[np.int64]:
    """One wait per request before it is sent in a closed loop, in nanoseconds."""
    waits = _exponential(count, seed) if exponential else np.ones(count)
    return np.round(waits * mean_s * NS).astype(np.int64)


def _units(process: Process, count: int, seed: int, burstiness: float) -> NDArray[np.float64]:
    """Arrival times at one per unit. Constant begins at 0, the others one gap after it."""
    if process == "constant":
        return np.arange(count, dtype=np.float64)
    if process == "poisson":
        return np.cumsum(_exponential(count, seed))
    # Mean 1 and squared coefficient of variation 1 / burstiness, as vLLM's --burstiness: below 1 more bursty.
    gaps = np.random.Generator(np.random.PCG64(seed)).standard_gamma(burstiness, count) / burstiness
    return np.cumsum(gaps)


def _exponential(count: int, seed: int) -> NDArray[np.float64]:
    """By inversion of one uniform stream: a seed means the same on every machine."""
    return -np.log1p(-np.random.Generator(np.random.PCG64(seed)).random(count))


def _laid_out(amounts: NDArray[np.float64], profile: Sequence[Segment], repeat: bool) -> NDArray[np.float64]:
    """Times at which the profile's cumulative factor reaches each amount; without one, the amounts.

    What falls on the edge of a pause comes after it. The last factor (repeated: any) is above 0.
    """
    if not profile or not len(amounts):
        return amounts
    times = np.empty_like(amounts)
    begun_s, done = 0.0, 0  # seconds and arrivals before this segment
    reached = 0.0  # cumulative factor before this segment
    for segment in cycle(profile) if repeat else profile:
        gain = segment.seconds * (segment.start + segment.end) / 2
        inside = int(np.searchsorted(amounts, reached + gain, side="left"))
        times[done:inside] = begun_s + _crossing(amounts[done:inside] - reached, segment)
        begun_s, reached, done = begun_s + segment.seconds, reached + gain, inside
        if done == len(amounts):
            return times
    times[done:] = begun_s + (amounts[done:] - reached) / profile[-1].end
    return times


def _crossing(amounts: NDArray[np.float64], segment: Segment) -> NDArray[np.float64]:
    """Where start·t + slope·t²/2 reaches each amount, in the form that does not cancel for small slopes."""
    slope = (segment.end - segment.start) / segment.seconds
    root = np.sqrt(np.maximum(segment.start**2 + 2 * slope * amounts, 0.0))
    denominator = segment.start + root
    return np.divide(2 * amounts, denominator, out=np.zeros_like(amounts), where=denominator > 0)
