"""The engine's counters over a cell: exact at both ends, unbroken where it started again in between."""

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.engines.speak.prometheus import Histogram, summed
from harness.model import HistogramIncrease
from harness.records.series import Telemetry, falls, unbroken

Counts = Mapping[str, float]
Falls = tuple[tuple[float, float], ...]  # of a counter: the last read before each and the first after it, s
Counted = tuple[dict[str, float] | None, Falls]

_SETTLE_S, _LOOK_S = 1.0, 0.05  # an engine may count the last tokens after it sent them
_IDLE_S = 15.0
_HELD = ("running", "waiting")
_OF_EACH = frozenset({"prompt_tokens", "output_tokens"})


def idle(read: Callable[[], Counts | None]) -> Counts | None:
    """Counts once the engine holds no request, by its own gauges, or those after 15 seconds.

    It may go on with an answer that the client gave up: one of the probe, or one past its deadline.
    """
    deadline, last = time.monotonic() + _IDLE_S, read()
    while last is not None and any(last.get(name) for name in _HELD) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        last = read()
    return last


def settled(read: Callable[[], Counts | None], names: frozenset[str]) -> Counts | None:
    """Counts that no longer change, or the last ones within a second."""
    deadline, last = time.monotonic() + _SETTLE_S, read()
    while last is not None and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        now = read()
        if now is None or all(now.get(name) == last.get(name) for name in names):
            return now or last
        last = now
    return last


def counted(
    before: Counts | None,
    after: Counts | None,
    after_s: float,
    telemetry: Telemetry,
    names: frozenset[str],
    prefix: str = "engine",
) -> Counted:
    """Increase by name, and when a counter fell. None where the engine did not answer at both ends.

    A counter falls when its engine starts again; what it had counted by the last sample before is kept. Some
    engines show a counter once it has counted: of one that shows others, it began at 0. Tokens that every
    request has were counted before, and could not be read.
    `after_s`: time of the second read; the first one was before 0. `telemetry`: samples from between the two
    alone, since any other would look like a fall.
    """
    if before is None or after is None:
        return None, ()
    increases: dict[str, float] = {}
    found: Falls = ()
    known = before.keys() | after.keys() - _OF_EACH if names & before.keys() else frozenset()
    for name in sorted(names & after.keys() & known):
        samples = telemetry.get(f"{prefix}.{name}")
        values = np.concatenate([[before.get(name, 0.0)], samples.values, [after[name]]])
        whole = unbroken(values)
        increases[name] = float(whole[-1] - whole[0])
        fell = np.flatnonzero(falls(values))
        if len(fell) > len(found):
            read_s = np.concatenate([[0.0], samples.at_ns / 1e9, [after_s]]).round(3)
            found = tuple(zip(read_s[fell].tolist(), read_s[fell + 1].tolist(), strict=True))
    return increases, found


def added(counts: Sequence[Counted]) -> Counted:
    """The sum over several engines of what `counted` returns for each, and the falls of all of them."""
    increases = summed([increase for increase, _ in counts])
    return increases, tuple(sorted(fall for _, falls in counts for fall in falls))


def added_histograms(increases: Sequence[Mapping[str, HistogramIncrease]]) -> dict[str, HistogramIncrease]:
    """The sum over several engines of the histograms that all have with the same bounds."""
    first, *others = increases
    whole = {}
    for name, increase in first.items():
        parts = [increase, *(other[name] for other in others if name in other)]
        bounds = [[bound for bound, _ in part.buckets] for part in parts]
        if len(parts) == len(increases) and all(each == bounds[0] for each in bounds):
            counts = zip(*([count or 0.0 for _, count in part.buckets] for part in parts), strict=True)
            whole[name] = HistogramIncrease(
                buckets=tuple(zip(bounds[0], map(sum, counts), strict=True)),
                sum=sum(part.sum for part in parts),
                count=sum(part.count for part in parts),
            )
    return whole


def histogram_increase(
    before: Mapping[str, Histogram] | None, after: Mapping[str, Histogram] | None
) -> dict[str, HistogramIncrease]:
    """Observations in between, by name, of those with a sum: without it, a mean would look like 0. Nothing
    where the engine did not answer at both ends.

    JSON has no infinite bound, so the last one is None.
    """
    increases: dict[str, HistogramIncrease] = {}
    if before is None or after is None:
        return increases
    for name, now in after.items():
        total, count = now["sum"], now["count"]
        if total is None or count is None:
            continue
        then = before.get(name)
        if then is None or _fell(then, now):  # it restarted
            then = {"buckets": [], "sum": 0.0, "count": 0.0}
        had = dict(then["buckets"])
        increases[name] = HistogramIncrease(
            buckets=tuple(
                (None if math.isinf(bound) else bound, up_to - had.get(bound, 0.0))
                for bound, up_to in now["buckets"]
            ),
            sum=total - (then["sum"] or 0.0),
            count=count - (then["count"] or 0.0),
        )
    return increases


def _fell(before: Histogram, after: Histogram) -> bool:
    """Whether any counter is lower than before. A new life of the engine may have counted more by now.

    A sum over label sets in another order may differ in its last digits.
    """
    had = dict(before["buckets"])
    pairs = [(before["sum"], after["sum"]), (before["count"], after["count"])]
    pairs += [(had.get(bound), up_to) for bound, up_to in after["buckets"]]
    return any(
        then is not None and now is not None and now < then and not math.isclose(now, then)
        for then, now in pairs
    )
