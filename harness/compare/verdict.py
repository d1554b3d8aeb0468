"""One pair of backends at one load: a verdict in one of five words for every declared metric."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.compare.observed import Series
from harness.compare.ratio import Method, Ratio, ratio
from harness.compare.rules import Rules
from harness.fairness import unequal
from harness.plan import LoadPoint
from harness.spec.measures import MEASURES
from harness.stats.runs import Interval, exponential, holm
from harness.stats.student import t_quantile

Word = Literal["faster", "slower", "same", "not enough runs", "not comparable"]

MOST_RUNS_ADVISED = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """About `a` against `b`; ratios and differences are a over b and a minus b."""

    a: str
    b: str
    load: LoadPoint
    metric: str
    verdict: Word
    why: str
    runs: tuple[int, int]
    paired: bool = False
    method: Method = "runs"
    ratio: Interval | None = None
    difference: Interval | None = None
    p_holm: float | None = None
    detectable: float | None = None  # a true difference of this size is found in 4 of 5 such experiments
    primary: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "load": self.load._asdict(),
            "metric": self.metric,
            "better": MEASURES[self.metric],
            "ratio": triple(self.ratio),
            "difference": triple(self.difference),
            "runs": list(self.runs),
            "paired": self.paired,
            "method": self.method,
            "verdict": self.verdict,
            "why": self.why,
            "primary": self.primary,
            "p_holm": self.p_holm,
            "smallest_detectable": self.detectable,
        }


def triple(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.estimate, interval.high]


def judge(a: Series, b: Series, load: LoadPoint, rules: Rules, refused: str | None = None) -> list[Finding]:
    """A finding per declared metric. `refused`: why the two cannot be compared at all, if it is known."""
    pair = _Pair(a, b, load, rules, {} if rules.forced else dict(_refusals(a, b, rules, refused)))
    tests = {metric: pair.test(metric) for metric in rules.metrics}
    family = [metric for metric, test in tests.items() if test.shift and not pair.refusal(metric)]
    p_holm = dict(zip(family, holm([pair.p(metric, tests[metric]) for metric in family]), strict=True))
    return [pair.finding(metric, test, p_holm.get(metric)) for metric, test in tests.items()]


def _refusals(a: Series, b: Series, rules: Rules, refused: str | None) -> Iterator[tuple[str, str]]:
    """Metric, or `*` for all, and why these two cannot be compared in it."""
    if reason := refused or _one_after_the_other(a, b, rules):
        yield "*", reason
    for found in unequal([*a.cells, *b.cells]):
        if found["matters"]:
            yield from ((metric, found["text"]) for metric in found["metrics"] or ("*",))


def _one_after_the_other(a: Series, b: Series, rules: Rules) -> str | None:
    """A machine that warms up or slows down would be taken for a difference between the backends."""
    if rules.apart or min(len(a.begun), len(b.begun)) < rules.min_runs:
        return None
    if max(a.begun) < min(b.begun) or max(b.begun) < min(a.begun):
        first, second = (a, b) if max(a.begun) < min(b.begun) else (b, a)
        return f"all runs of {first.label} came before all runs of {second.label}: drift is not ruled out"
    return None


@dataclass(frozen=True, slots=True)
class _Pair:
    a: Series
    b: Series
    load: LoadPoint
    rules: Rules
    refused: Mapping[str, str]

    def refusal(self, metric: str) -> str | None:
        return next(
            (self.refused[key] for key in ("*", metric, metric.split(".")[0]) if key in self.refused), None
        )

    def floor(self, metric: str) -> float:
        return self.rules.floor_of((self.a.label, self.b.label), self.load.label, metric)

    def test(self, metric: str) -> Ratio:
        return ratio(self.a, self.b, metric, self.rules.min_runs, 1 - self.rules.alpha)

    def p(self, metric: str, test: Ratio) -> float:
        edge = math.log1p(self.floor(metric))
        return 1.0 if test.shift is None else test.shift.p_beyond(-edge, edge)

    def finding(self, metric: str, test: Ratio, p_holm: float | None) -> Finding:
        interval = detectable = None
        if test.shift is not None:
            interval = exponential(test.shift.interval(1 - self.rules.alpha))
            strictest = self.rules.alpha / len(self.rules.metrics)
            detectable = (1 + self.floor(metric)) * math.exp(test.shift.detectable(alpha=strictest)) - 1
        word, why = self._word(metric, test, interval, p_holm)
        return Finding(
            a=self.a.label,
            b=self.b.label,
            load=self.load,
            metric=metric,
            verdict=word,
            why=why,
            runs=test.runs,
            paired=test.paired,
            method=test.method,
            ratio=interval,
            difference=test.difference,
            p_holm=p_holm,
            detectable=detectable,
            primary=metric == self.rules.primary,
        )

    def _word(
        self, metric: str, test: Ratio, ratio: Interval | None, p_holm: float | None
    ) -> tuple[Word, str]:
        if refusal := self.refusal(metric):
            return "not comparable", refusal
        if test.shift is None or ratio is None:
            return "not enough runs", self._missing(metric, test)
        floor = self.floor(metric)
        # Where the machine is noisier than the usual margin, no difference below its floor is seen.
        same = max(self.rules.same_within, floor)
        found = f"{span_words(ratio)} over {test.runs_words}"
        if p_holm is not None and p_holm < self.rules.alpha:
            better = (ratio.estimate < 1) == (MEASURES[metric] == "lower")
            return ("faster" if better else "slower"), f"{found}, beyond the floor of {_percent(floor)}"
        if 1 / (1 + same) <= ratio.low and ratio.high <= 1 + same:
            return "same", f"{found}, within {_percent(same)}"
        return "not enough runs", f"{found}: {self._undecided(test, ratio, floor, same)}"

    def _undecided(self, test: Ratio, ratio: Interval, floor: float, same: float) -> str:
        needed = _runs_needed(test, floor, same, self.rules.alpha / len(self.rules.metrics))
        advice = f"about {needed} runs would decide" if needed else "very many runs would be needed"
        if ratio.low > 1 + floor or ratio.high < 1 / (1 + floor):
            count = len(self.rules.metrics)
            return f"beyond {_percent(floor)} by itself, but not as one of {count} metrics; {advice}"
        return f"neither beyond {_percent(floor)} nor within {_percent(same)}; {advice}"

    def _missing(self, metric: str, test: Ratio) -> str:
        needed = self.rules.min_runs
        if test.zero:
            return "a value is 0: there is no ratio"
        invalid = [f"{one.invalid} of {one.label} INVALID" for one in (self.a, self.b) if one.invalid]
        nulls = [cell.get("nulls") or {} for one in (self.a, self.b) for cell in one.cells]
        reasons = [str(null[metric]) for null in nulls if metric in null][:1]
        counts = f"{test.runs[0]} and {test.runs[1]} runs, {needed} are needed"
        return "; ".join([counts, *invalid, *reasons])


def _runs_needed(test: Ratio, floor: float, same: float, alpha: float) -> int | None:
    """Were estimate and spread to stay: fewest runs whose interval is clear of a limit."""
    assert test.shift is not None
    away, have = abs(test.shift.estimate), min(test.runs)
    room = max(away - math.log1p(floor), math.log1p(same) - away)
    spread = test.shift.error * have**0.5
    for runs in range(have + 1, MOST_RUNS_ADVISED + 1):
        freedom = runs - 1 if test.paired else 2 * (runs - 1)
        if t_quantile(1 - alpha / 2, freedom) * spread / runs**0.5 < room:
            return runs
    return None


def span_words(ratio: Interval) -> str:
    """`9.1 % lower (8.0 % lower to 10.2 % lower)`: of a against b."""
    return f"{_change(ratio.estimate)} ({_change(ratio.low)} to {_change(ratio.high)})"


def _change(ratio: float) -> str:
    if ratio >= 2:
        return f"{ratio:.3g} times"
    return f"{_percent(abs(ratio - 1))} {'lower' if ratio < 1 else 'higher'}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share >= 0.1 else f"{100 * share:.2g} %"
