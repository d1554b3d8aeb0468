"""Finds where a growing working set no longer fits: the hit rate falls through half of what it was.

The hit rate of one engine is a curve over the working set, measured at a few points, and not known between
them. The knee of a repeat is between the last point above half and the first one below. The interval of
several repeats spans all of theirs. The estimate is where a straight line over the logarithm of the working
set crosses half.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from harness.model import CellResult, Knee, known
from harness.model.grouping import grouped
from harness.model.numbers import counted, percent_of_all, short

HALF = 0.5
UNRELATED = 0.2  # share of the hit rate that fits; hits of a shared chat template alone are below it
Point = tuple[float, float]  # working set over KV cache, hit rate


def knees(cells: Sequence[CellResult]) -> tuple[Knee, ...]:
    """The knee of each backend that was measured over working sets. INVALID cells are left out."""
    sets = grouped((cell.label, cell) for cell in cells if cell.load.kind == "working-set")
    return tuple(_of(label, mine) for label, mine in sets.items())


def filled(cell: CellResult) -> float | None:
    """The working set divided by the KV cache of the cell's own engine; None for a control.

    It includes the chat template if prompt tokens were counted. If the engine does not report the size of its
    cache, the size that the run took is used.
    """
    held, prompt = known(cell.load.working_set), cell.conditions.prompt_tokens
    if held is None or not cell.load.value:
        return None
    if held.kv_tokens is None:
        return float(cell.load.value)
    mean = prompt.mean if prompt else None
    tokens = held.held_tokens if mean is None else mean + (cell.conditions.output_tokens_mean or 0.0)
    return held.prefixes * tokens / held.kv_tokens


def _of(label: str, cells: Sequence[CellResult]) -> Knee:
    usable = [cell for cell in cells if not cell.invalid and cell.prefix_cache_hit_rate is not None]
    ideals = [cell.prefix_cache_ideal for cell in usable if cell.load.value and cell.prefix_cache_ideal]
    curves, ideal = list(_curves(usable)), max(ideals, default=None)
    found = [knee for curve in curves if (knee := _crossing(curve, ideal)) is not None]
    lows, values, highs = ([ends[index] for ends in found] for index in range(3))
    controls = [cell.prefix_cache_hit_rate or 0.0 for cell in usable if not cell.load.value]
    return Knee(
        label=label,
        value=median(values) if found else None,
        interval=(min(lows), max(highs)) if found else None,
        repeats=len(curves),
        crossed=len(found),
        largest=max((curve[-1][0] for curve in curves), default=None),
        fits=median(curve[0][1] for curve in curves) if curves else None,
        ideal=ideal,
        unrelated=max(controls, default=None),
    )


def _curves(cells: Sequence[CellResult]) -> Iterator[list[Point]]:
    """Yields the curve of each repeat with two points or more, by ascending working set."""
    for repeat in sorted({cell.repeat for cell in cells}):
        points = sorted(
            (size, cell.prefix_cache_hit_rate or 0.0)
            for cell in cells
            if cell.repeat == repeat and (size := filled(cell)) is not None
        )
        if len(points) > 1:
            yield points


def _fits(rate: float, ideal: float | None) -> bool:
    """Whether a working set with this hit rate is in the cache; what falls from less is no knee."""
    return ideal is None or rate >= HALF * ideal


def _crossing(curve: Sequence[Point], ideal: float | None) -> tuple[float, float, float] | None:
    """Working sets of the last point above half, of the crossing, and of the next point; None without one."""
    if not _fits(curve[0][1], ideal):
        return None
    half = HALF * curve[0][1]
    below = next((index for index, (_, rate) in enumerate(curve) if rate < half), None)
    if below is None:
        return None
    (low, above), (high, under) = curve[below - 1], curve[below]
    share = (above - half) / (above - under)
    return low, math.exp(math.log(low) + share * math.log(high / low)), high


def words(knee: Knee) -> Iterator[str]:
    """Yields `vllm: the hit rate falls through half of 85% at 0.9 × the KV cache (…)`, and remarks."""
    if knee.fits is None:
        yield f"{knee.label}: no knee, since fewer than two working sets have a hit rate"
        return
    fits, count = f"{percent_of_all(knee.fits)}%", counted(knee.repeats, "repeat")
    if not _fits(knee.fits, knee.ideal):
        yield f"{knee.label}: no knee, since the smallest working set has {fits} hits: it does not fit"
    elif knee.value is None or knee.interval is None:
        largest = f"{short(knee.largest or 0)} × the KV cache"
        yield f"{knee.label}: the hit rate stays above half of {fits} up to {largest} ({count})"
    else:
        some = "" if knee.crossed == knee.repeats else f", seen in {knee.crossed}"
        yield (
            f"{knee.label}: the hit rate falls through half of {fits} at {short(knee.value)} × the KV cache "
            f"(between {' and '.join(map(short, knee.interval))}, {count}{some})"
        )
    if knee.unrelated is not None and knee.unrelated > UNRELATED * knee.fits:
        share = f"{percent_of_all(knee.unrelated)}%"
        yield f"{knee.label}: {share} hits where no prefix is used twice, so not all hits are of the prefixes"
