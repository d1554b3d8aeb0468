"""Changes of level in a series of few noisy values, such as one figure of every night.

Binary segmentation: the split with the largest t between its two sides is kept if it is significant among all
splits that were looked at (Bonferroni). Both sides are then split in the same way. Where no split is, the
stretch that differs most from all around it is asked likewise (circular binary segmentation, Olshen et al.,
Biostatistics 2004).
"""

from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.stats.runs import Floats, Shift
from harness.stats.student import t_cdf

FAR = 5.0  # deviations from the median of its neighbours: 1 of 100,000 normal values
MOST_ODD = 0.1  # of the values, or one of them
ALPHA = 0.01
STRETCH_ALPHA = 0.0001  # where nights resemble their neighbours, chance makes stretches
MEDIAN_STEP = 0.954  # deviations between two normal values, in the median


@dataclass(frozen=True, slots=True)
class Level:
    """Values `start` to `stop` (exclusive) of a series, which have one `mean`.

    `count` of them are not odd; `squares` is the sum of their squared distances from it.
    """

    start: int
    stop: int
    mean: float
    count: int
    squares: float


def levels(values: Floats, *, least: int = 3, rounded_to: float = 0.0) -> list[Level]:
    """Levels of a series in order. `rounded_to`: the step of values that are rounded, 0 if they are not.

    Each side of a change has `least` values or more, and most of its values, on its own side of the middle
    between both means. One odd value is no change, however far it lies and however long the series is, and
    hides none.
    """
    usual = _usual(values, least)
    kept = values[usual]
    bounds = [0, *_splits(kept, 0, least, rounded_to), len(kept)]
    while (unfounded := _unfounded(kept, bounds, least)) is not None:
        bounds.remove(unfounded)
    # An odd value next to a change is the first of the new level: that of an upgrade, rather than the last.
    places = [0, *(int(usual[bound - 1]) + 1 for bound in bounds[1:-1]), len(values)]
    return [
        _level(ends, kept[slice(*inner)])
        for ends, inner in zip(pairwise(places), pairwise(bounds), strict=True)
        if inner[0] < inner[1]
    ]


def _level(ends: tuple[int, int], values: Floats) -> Level:
    mean = float(values.mean())
    return Level(*ends, mean, len(values), float(((values - mean) ** 2).sum()))


def joined(level: Level, after: Level) -> Level:
    count = level.count + after.count
    mean = (level.count * level.mean + after.count * after.mean) / count
    away = sum(part.count * (part.mean - mean) ** 2 for part in (level, after))
    return Level(level.start, after.stop, mean, count, level.squares + after.squares + away)


def apart(level: Level, other: Level, rounded_to: float = 0.0) -> Shift:
    """How far a level is above another one, with the spread of both pooled as the split was found."""
    count = level.count + other.count
    squares = max(level.squares + other.squares, count * rounded_to**2 / 12)
    freedom = max(count - 2, 1)
    error = (squares / freedom * (1 / level.count + 1 / other.count)) ** 0.5
    return Shift(level.mean - other.mean, error, freedom)


def _usual(values: Floats, least: int) -> NDArray[np.intp]:
    """Places of the values without the odd ones, which lie FAR from the medians of their neighbours.

    Such a value is on no level. Even a part of it in a mean makes a level of two and a third that is a bit
    high, and its square in the spread would hide a step for as long as it is there. Fewer than `least` in a
    row can be odd. Where more than MOST_ODD are, and more than one, they are what is usual.
    """
    all_places, window = np.arange(len(values)), 2 * least - 1
    if len(values) < window:
        return all_places
    deviation = float(np.median(np.abs(np.diff(values)))) / MEDIAN_STEP
    medians = np.median(sliding_window_view(values, window), axis=1)
    # Around each value, the one before and the one after: next to a step one of the three is on its side.
    firsts = np.clip(all_places + np.array([[-1], [0], [1]]) - (least - 1), 0, len(medians) - 1)
    near = np.abs(values - medians[firsts]).min(axis=0) <= FAR * deviation
    odd = len(values) - np.count_nonzero(near)
    return np.flatnonzero(near) if odd <= max(MOST_ODD * len(values), 1) else all_places


def _splits(values: Floats, offset: int, least: int, rounded_to: float) -> list[int]:
    found = _split(values, least, rounded_to) or _stretch(values, least, rounded_to)
    bounds = [0, *found, len(values)] if found else []
    inner = (
        _splits(values[start:stop], offset + start, least, rounded_to) for start, stop in pairwise(bounds)
    )
    return sorted([*(offset + split for split in found), *chain.from_iterable(inner)])


def _split(values: Floats, least: int, rounded_to: float) -> list[int]:
    """The place before and after which the values differ most, or nothing."""
    looked_at = range(least, len(values) - least + 1)
    candidates = [split for split in looked_at if min(_on_own_side(values, split)) >= least]
    # By t, not by p: in a long series p is 0 at several splits next to the true one.
    best = max(candidates, key=lambda split: _t_value(values, split, rounded_to), default=0)
    return [best] if best and _is_sure(values, best, rounded_to, ALPHA / len(looked_at)) else []


def _stretch(values: Floats, least: int, rounded_to: float) -> list[int]:
    """Both ends of the stretch that differs most from all around it, or nothing.

    Where a level comes back after another, either side of a single split can hold as much of both.
    """
    count = len(values)
    if count < 3 * least:
        return []
    stretches: list[tuple[float, int, int]] = []  # the best of each length, with the squares that it explains
    looked_at = 0
    sums = np.cumsum(values - values.mean())  # up to each value, itself included
    for length in range(least, count - 2 * least + 1):
        apart = np.abs(sums[least + length - 1 : count - least] - sums[least - 1 : count - least - length])
        looked_at += len(apart)
        start = int(apart.argmax())
        stretches.append((float(apart[start] ** 2 / (length * (count - length))), least + start, length))
    for _squares, start, length in sorted(stretches, reverse=True):
        turned = np.roll(values, -start)  # what lies before the stretch goes behind it
        if min(_on_own_side(turned, length)) >= least:
            sure = _is_sure(turned, length, rounded_to, STRETCH_ALPHA / looked_at)
            return [start, start + length] if sure else []
    return []


def _is_sure(values: Floats, split: int, rounded_to: float, alpha: float) -> bool:
    return 2 * t_cdf(-_t_value(values, split, rounded_to), len(values) - 2) < alpha


def _unfounded(values: Floats, bounds: list[int], least: int) -> int | None:
    """The first bound next to which a level lacks `least` of its values, or most, on its own side.

    Most is asked of levels that are found, not of a side of a split: that may hold several levels.
    """
    for start, split, stop in zip(bounds, bounds[1:], bounds[2:], strict=False):
        counts = _on_own_side(values[start:stop], split - start)
        most = 2 * counts[0] > split - start and 2 * counts[1] > stop - split
        if not most or min(counts) < least:
            return split
    return None


def _on_own_side(values: Floats, split: int) -> tuple[int, int]:
    """Counts before and after the split: values on their own side of the middle between both means.

    One far value moves a mean, but no other value.
    """
    first, second = values[:split], values[split:]
    before, after = float(first.mean()), float(second.mean())
    middle, sign = (before + after) / 2, 1 if after > before else -1
    return int((sign * (first - middle) < 0).sum()), int((sign * (second - middle) > 0).sum())


def _t_value(values: Floats, split: int, rounded_to: float) -> float:
    """t without its sign, with the spread of both sides pooled: three values alone have little.

    Equal values that were rounded have the spread of what is rounded to them, that of a uniform distribution.
    """
    first, second = values[:split], values[split:]
    before, after = first.mean(), second.mean()
    measured = float(((first - before) ** 2).sum() + ((second - after) ** 2).sum())
    squares = max(measured, len(values) * rounded_to**2 / 12)
    error = (squares / (len(values) - 2) * (1 / len(first) + 1 / len(second))) ** 0.5
    away = abs(float(after - before))
    if away == 0:
        return 0.0
    return away / error if error > 0 else float("inf")
