"""Ratio of two backends in one metric with its error, from one number per run or from pooled requests."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self, TypeVar

import numpy as np

from harness.metrics.distribution import samples_needed
from harness.model import Estimate, Interval, Method
from harness.model.numbers import counted
from harness.stats.bootstrap import Pool, log_quantile, log_quantile_ratio
from harness.stats.runs import Either, Floats, Shift, exponential, hull, middle
from harness.stats.serial import independent_share
from harness.verdicts.rules import Rules
from harness.verdicts.run_values import Series, Unit, Work, aligned, by_start

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of a over b.

    `shifts` are estimates of its logarithm: one, or two if runs are left out, without and with them. It is
    empty with too few runs, or with a value that is not above 0.
    """

    runs: tuple[int, int]
    paired: bool
    method: Method
    shifts: tuple[Shift, ...] = ()
    difference: Interval | None = None  # of the values themselves; only where every run has one
    zero: bool = False
    units: tuple[Unit, Unit] = ("runs", "runs")  # sessions that are compared may have unlike ones
    blocks: tuple[tuple[float, ...], ...] = ()  # by start: logarithms of the ratios of its blocks

    @property
    def shift(self) -> Shift | Either | None:
        return Either(self.shifts) if len(self.shifts) > 1 else next(iter(self.shifts), None)

    @property
    def of_one_start(self) -> bool:
        """Whether values of a side are neighbours in one start, which may hang together."""
        return "blocks" in self.units

    def counts(self, sides: tuple[Series, Series] | None) -> str:
        """`3 runs each`, `3 and 4 runs`, `3 runs and 1 start`; unequal ones of `sides` to be named as
        `3 runs of the new one and 4 of the baseline`.
        """
        (first, second), (unit, other) = self.runs, self.units
        if unit == other and first == second:
            return f"{counted(first, unit.removesuffix('s'))} each"
        if unit == other and sides is None:
            return f"{first} and {second} {unit}"
        words = counted(first, unit.removesuffix("s")), counted(second, other.removesuffix("s"))
        if sides is None:
            return " and ".join(words)
        rest = f"{second}" if unit == other else words[1]
        return f"{words[0]} of {sides[0].label} and {rest} of {sides[1].label}"

    def each(self, before: str = "") -> str:
        """`12 runs and 12 starts` with `12 ` before each unit."""
        return " and ".join(f"{before}{unit}" for unit in dict.fromkeys(self.units))

    def runs_words(self, sides: tuple[Series, Series] | None) -> str:
        counts = self.counts(sides)
        if self.paired and self.blocks and set(self.units) == {"starts"}:
            counts = f"{self.runs[0]} starts with {sum(map(len, self.blocks))} pairs of blocks"
        elif self.paired:
            units = sorted(set(self.units), reverse=True)
            pair = " and ".join(f"a {unit.removesuffix('s')}" for unit in units) if units[1:] else units[0]
            counts = f"{self.runs[0]} pairs of {pair}" + (" of this start" if self.of_one_start else "")
        return counts + (", requests pooled" if self.method == "pooled" else "")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one comparison, as shares, with what unequal work may move its ratio by."""

    floor: float  # smallest difference that counts
    same: float  # margin of `same`

    @classmethod
    def of_work(
        cls, rules: Rules, labels: Iterable[str], loads: Iterable[str], metric: str, apart: float
    ) -> Self:
        """`apart`: by which share unequal work may move the ratio."""
        own = max(rules.floor_of(labels, load, metric) for load in loads)
        return cls((1 + own) * (1 + apart) - 1, (1 + rules.same_within) / (1 + apart) - 1)

    def p_apart(self, shift: Shift | Either) -> float:
        """p of the hypothesis that the difference is within the floor."""
        edge = math.log1p(self.floor)
        return shift.p_beyond(-edge, edge)

    def p_same(self, shift: Shift | Either) -> float:
        """p of the hypothesis that the difference is beyond the margin of `same`.

        It is 1 if the floor exceeds the margin: no difference is then known to be within it.
        """
        edge = math.log1p(self.same)
        return 1.0 if self.floor > self.same else shift.p_outside(-edge, edge)


def ratio(a: Series, b: Series, metric: str, least: int, confidence: float) -> Ratio:
    """Computes the ratio if there are `least` runs. A percentile too high for single runs is of all requests.

    If runs are left out, a verdict must hold with them as well, because the reason to leave them out may be
    correlated with their speed.
    """
    kept = a.evidence(metric), b.evidence(metric)
    estimate = _ratio(*kept, metric, least, confidence)
    if not estimate.shifts or (kept[0] is a and kept[1] is b):
        return estimate
    whole = _ratio(a, b, metric, least, confidence)
    if not whole.shifts:
        return replace(whole, runs=estimate.runs)
    alone = estimate.difference, whole.difference
    difference = hull([value for value in alone if value]) if all(alone) else None
    return replace(estimate, shifts=estimate.shifts + whole.shifts, difference=difference)


def _ratio(a: Series, b: Series, metric: str, least: int, confidence: float) -> Ratio:
    first, second, paired = _aligned(a, b, a.values(metric), b.values(metric), least)
    values, others = by_start(first, a.starts()), by_start(second, b.starts())
    none = Ratio((len(values), len(others)), paired, "runs", units=(a.unit, b.unit))
    if min(none.runs) < least:
        return _pooled(a, b, metric, least) or none
    if min(*first.values(), *second.values()) <= 0:
        return replace(none, zero=True)
    make_shift = Shift.paired if paired else Shift.welch
    logs, other_logs = ([np.log(start) for start in side] for side in (values, others))
    blocks = tuple(tuple((x - y).tolist()) for x, y in zip(logs, other_logs, strict=True)) if paired else ()
    shift = make_shift(_means(logs), _means(other_logs))
    shift = shift.of_rounded(rounding(a, values, relative=True) + rounding(b, others, relative=True))
    apart = make_shift(_means(values), _means(others)).of_rounded(rounding(a, values) + rounding(b, others))
    if none.of_one_start:
        share = independent_share([value for start in blocks for value in start])
        shift, apart = shift.of_fewer(share), apart.of_fewer(share)
    return replace(none, shifts=(shift,), difference=apart.interval(confidence), blocks=blocks)


def _aligned(
    a: Series, b: Series, mine: Mapping[Work, T], other: Mapping[Work, T], least: int
) -> tuple[dict[Work, T], dict[Work, T], bool]:
    """Blocks of one start are compared in pairs alone, however few."""
    return aligned(mine, other, (a.starts(), b.starts()), 0 if "blocks" in (a.unit, b.unit) else least)


def _means(starts: Sequence[Sequence[float] | Floats]) -> Floats:
    return np.array([np.mean(start) for start in starts])


def _pooled(a: Series, b: Series, metric: str, least: int) -> Ratio | None:
    share = share_of(metric)
    if share is None or min(len(a.cells), len(b.cells)) < least:
        return None  # before samples are read
    mine, other, paired = _aligned(a, b, a.pooled(metric), b.pooled(metric), least)
    first, second = _pools(mine, a), _pools(other, b)
    if min(len(first), len(second)) < least or not (_enough(first, share) and _enough(second, share)):
        return None
    shift = log_quantile_ratio(Pool.of(first), Pool.of(second), share, paired=paired)
    if shift is None:
        return None
    return Ratio((len(first), len(second)), paired, "pooled", (shift,), units=(a.unit, b.unit))


def _pools(values: Mapping[Work, Floats], row: Series) -> list[Floats]:
    return [np.concatenate(start) for start in by_start(values, row.starts())]


def rounding(row: Series, values: Sequence[Sequence[float]], *, relative: bool = False) -> float:
    """Variance of the rounding error of a mean of figures that a file printed with few digits; 0 for others.

    Equal figures may all be off by the same, so their mean is as far off as each. Nine digits are as good as
    all: a file in seconds has others in ms.
    """
    if not any(cell.imported is not None and cell.imported.level == "summary" for cell in row.cells):
        return 0.0
    figures = [figure for start in values for figure in start]
    step = last_digit(figures)
    return (step / math.fsum(figures) * len(figures) if relative else step) ** 2 / 12


def last_digit(figures: Iterable[float]) -> float:
    """The last digit that any of the figures has; 1 of whole ones."""
    return min(
        10.0 ** -max(-int(Decimal(f"{figure:.9g}").normalize().as_tuple().exponent), 0) for figure in figures
    )


def share_of(metric: str) -> float | None:
    """The percentile of a metric as a share: 0.99 of `ttft_ms.p99`; None if it has none."""
    name = metric.partition(".")[2]
    return int(name[1:]) / 100 if name.startswith("p") and name[1:].isdigit() else None


def _enough(runs: list[Floats], share: float) -> bool:
    return sum(map(len, runs)) >= samples_needed(100 * share)


def estimate(row: Series, metric: str) -> Estimate | None:
    """None without a figure. From a single run, the interval has no ends."""
    found = row.values(metric)
    values = _means(by_start(found, row.starts()))
    if len(found) < len(row.cells):
        pooled = _pooled_estimate(row, metric)
        if pooled is not None:
            return pooled
    if not len(values):
        return None
    if len(values) == 1:
        return _estimate(row, metric, (None, middle(values), None), 1, "runs")
    logarithmic = bool((values > 0).all())
    scaled = np.log(values) if logarithmic else values
    shift = Shift.of_mean(scaled).of_rounded(rounding(row, [values.tolist()], relative=logarithmic))
    if row.unit == "blocks":
        shift = shift.of_fewer(independent_share(scaled.tolist()))
    interval = exponential(shift.interval()) if logarithmic else shift.interval()
    return _estimate(row, metric, (interval.low, interval.estimate, interval.high), len(values), "runs")


def _estimate(
    row: Series, metric: str, interval: tuple[float | None, float, float | None], runs: int, method: Method
) -> Estimate:
    load = row.cells[0].point
    return Estimate(label=row.label, load=load, metric=metric, interval=interval, runs=runs, method=method)


def _pooled_estimate(row: Series, metric: str) -> Estimate | None:
    share, runs = share_of(metric), _pools(row.pooled(metric), row)
    if share is None or len(runs) < 2 or not _enough(runs, share):
        return None
    shift = log_quantile(Pool.of(runs), share)
    if shift is None:
        return None
    if row.unit == "blocks":  # a percentile is off by how many requests of each block are beyond it
        beyond = [float((block > math.exp(shift.estimate)).mean()) for block in runs]
        shift = shift.of_fewer(independent_share(beyond))
    interval = exponential(shift.interval())
    return _estimate(row, metric, (interval.low, interval.estimate, interval.high), len(runs), "pooled")
