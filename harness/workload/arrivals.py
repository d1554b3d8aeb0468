"""Computes when requests are due, in ns from t0, before the window and from a seed. Pure.

Arrivals are drawn at one per unit of time and then mapped to the clock by the inverse of the cumulative rate,
so that every process (constant, Poisson, gamma) goes with every profile (flat, ramp, steps, bursts).

A plain draw of n arrivals has a rate of its own: 32 Poisson arrivals at 8/s are sent at 5.9 to 10.9/s. So the
process is conditioned on its count: the gaps of each part of a cell are scaled to the asked mean. For
exponential and gamma gaps, their shares of the sum are independent of the sum. The scaled gaps are therefore
the same process, given that exactly these arrivals fall into the time that they should take.
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
    """How the rate changes over time. At its end the last rate goes on, unless the profile is repeated."""

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
    parts: Sequence[int] = (),
) -> NDArray[np.int64]:
    """Ascending offsets from 0 in ns, at exactly the asked rate over each part of the cell.

    `parts` are positions of arrivals at which a part begins, such as the measured one.
    """
    units = _conditioned(_units(process, count, seed, burstiness), parts)
    return np.round(_laid_out(units / rate, profile.segments, profile.repeated) * NS).astype(np.int64)


def replayed(at_ns: NDArray[np.int64], speed: float) -> NDArray[np.int64]:
    """Times of a trace since its first request, in ns, replayed at a multiple of its pace."""
    return np.round((at_ns - at_ns[:1]) / speed).astype(np.int64)


def due_within(rate: float, count: int, seconds: float, profile: Profile = FLAT, *, after: int = 0) -> int:
    """Number of `count` arrivals that are due until `seconds` after the one at position `after`."""
    constant = arrivals("constant", rate, count, 0, profile=profile)
    begin = constant[after : after + 1].sum()
    return int(np.searchsorted(constant, begin + round(seconds * NS), side="left"))


def seconds_for(rate: float, count: int, profile: Profile = FLAT) -> float:
    """Time of `count` arrivals on average. Rounds of a repeated profile are counted, not gone through."""
    amount, begun_s = count / rate, 0.0
    if profile.repeated:
        rounds, amount = divmod(amount, sum(segment.gain for segment in profile.segments))
        begun_s = rounds * sum(segment.seconds for segment in profile.segments)
    with np.errstate(over="ignore"):  # infinity is longer than any limit
        return begun_s + float(_laid_out(np.array([amount]), profile.segments, profile.repeated)[0])


def think_times(mean_s: float, exponential: bool, count: int, seed: int) -> NDArray[np.int64]:
    """Waits before each request of a closed loop, in ns."""
    waits = _exponential(count, seed) if exponential else np.ones(count)
    return np.round(waits * mean_s * NS).astype(np.int64)


def _units(process: Process, count: int, seed: int, burstiness: float) -> NDArray[np.float64]:
    """Arrival times with gaps of one unit on average, the first at 0."""
    if process == "constant":
        return np.arange(count, dtype=np.float64)
    if process == "poisson":
        gaps = _exponential(count, seed)
    else:  # squared coefficient of variation 1 / burstiness, like --burstiness of vLLM: below 1 more bursty
        gaps = np.random.Generator(np.random.PCG64(seed)).standard_gamma(burstiness, count) / burstiness
    times = np.cumsum(gaps)
    return times - times[:1]


def _conditioned(units: NDArray[np.float64], parts: Sequence[int]) -> NDArray[np.float64]:
    """Scales arrivals so that number k is at k units, for each k of `parts` and for the last one."""
    last = len(units) - 1
    anchors = [0]
    for part in sorted({last, *parts}):
        # Gaps of a very bursty draw may all be 0: such a part cannot be scaled alone.
        if 0 < part <= last and units[part] > units[anchors[-1]]:
            anchors.append(part)
    if len(anchors) == 1:
        return units
    return np.interp(units, units[anchors], anchors)


def _exponential(count: int, seed: int) -> NDArray[np.float64]:
    """Draws gaps by inversion of one uniform stream, so that a seed gives the same on every machine."""
    return -np.log1p(-np.random.Generator(np.random.PCG64(seed)).random(count))


def _laid_out(amounts: NDArray[np.float64], profile: Sequence[Segment], repeat: bool) -> NDArray[np.float64]:
    """Times at which the cumulative factor of the profile reaches each amount; without one, the amounts.

    An arrival on the edge of a pause comes after it. The last factor (if repeated: any) must be above 0.
    """
    if not profile or not len(amounts):
        return amounts
    times = np.empty_like(amounts)
    begun_s, done = 0.0, 0  # seconds and arrivals before this segment
    reached = 0.0  # cumulative factor before this segment
    for segment in cycle(profile) if repeat else profile:
        inside = int(np.searchsorted(amounts, reached + segment.gain, side="left"))
        times[done:inside] = begun_s + _crossing(amounts[done:inside] - reached, segment)
        begun_s, reached, done = begun_s + segment.seconds, reached + segment.gain, inside
        if done == len(amounts):
            return times
    times[done:] = begun_s + (amounts[done:] - reached) / profile[-1].end
    return times


def _crossing(amounts: NDArray[np.float64], segment: Segment) -> NDArray[np.float64]:
    """Times t at which start·t + slope·t²/2 reaches each amount, without cancellation for small slopes."""
    slope = (segment.end - segment.start) / segment.seconds
    root = np.sqrt(np.maximum(segment.start**2 + 2 * slope * amounts, 0.0))
    denominator = segment.start + root
    return np.divide(2 * amounts, denominator, out=np.zeros_like(amounts), where=denominator > 0)
