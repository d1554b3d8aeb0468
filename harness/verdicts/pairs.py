"""Decides every pair of backends at every load: one of five verdicts for each declared metric."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harness.metrics.distribution import samples_needed
from harness.model import ComparisonVerdict, Interval, Levels, LoadPoint, PairVerdict, better_of
from harness.model.metric_table import root_of
from harness.model.numbers import short
from harness.stats.runs import exponential, holm, holm_levels
from harness.stats.serial import correlation_steps, independent_share
from harness.stats.student import t_quantile
from harness.verdicts.change_words import share_words, words_apart
from harness.verdicts.comparable import obstacles, refusal
from harness.verdicts.evidence import RATES, flattered, kind_of
from harness.verdicts.prospects import MOST_STARTS, Costs, Prospect, levels
from harness.verdicts.ratio import Limits, Ratio, ratio, share_of
from harness.verdicts.rules import Rules
from harness.verdicts.run_values import Series

MOST_RUNS_ADVISED = 50
MOST_TOGETHER = 50  # backends that are compared, in 1,225 pairs: to decide among more takes very many runs
MOST_DETECTABLE = math.log(1000)  # a larger effect, as a log ratio, is of no use to a reader
LEAST_INDEPENDENT = 8  # blocks of one start: an interval over fewer is too narrow too often
INDEPENDENT_AFTER = 5  # length of a pair of blocks in units of how long noise lasts
IN_TOKENS, IN_CHARACTERS = "output_tokens_per_s", "output_chars_per_s"


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two backends at one load point. `refused` is a reason why they cannot be compared at all."""

    a: Series
    b: Series
    load: LoadPoint
    rules: Rules
    refused: str | None = None


def find(
    rows: Mapping[LoadPoint, Sequence[Series]], rules: Rules, alpha: float | None = None
) -> list[PairVerdict]:
    """`decide` over all pairs of a run, from the series of every load point; MOST_TOGETHER bounds them."""
    few = {load: here for load, here in rows.items() if len(here) <= MOST_TOGETHER}
    pairings = [Pairing(a, b, load, rules) for load, here in few.items() for a, b in combinations(here, 2)]
    return decide(pairings, alpha)


def decide(pairings: Sequence[Pairing], alpha: float | None = None) -> list[PairVerdict]:
    """A finding for each pairing and declared metric, in order. Primary and other metrics are a family each.

    It depends only on what was measured so far, so it can be asked again after every run. `alpha` is the
    level of this look for both families, by default that of the rules. Error rates:
    docs/verdicts-evidence.md.
    """
    tests = [test for pairing in pairings for test in _tests(pairing, alpha)]
    judged: dict[int, _Judged] = {}
    for primary in (True, False):
        family = [index for index, test in enumerate(tests) if test.counts and test.primary == primary]
        judged |= dict(zip(family, _family([tests[index] for index in family]), strict=True))
    return [test.finding(judged.get(index)) for index, test in enumerate(tests)]


def _tests(pairing: Pairing, alpha: float | None) -> list["_Test"]:
    rules = pairing.rules if alpha is None else replace(pairing.rules, alpha=alpha)
    found = obstacles(pairing.a, pairing.b, rules, pairing.refused)
    metrics = rules.metrics
    if IN_TOKENS in metrics and IN_CHARACTERS not in metrics and found.other_tokens:
        metrics = (*metrics, IN_CHARACTERS)  # throughput in a unit that both share
    a, b = (
        replace(side, at_least=True) if side.label == found.idle else side for side in (pairing.a, pairing.b)
    )
    of_look = replace(pairing, a=a, b=b, rules=rules)
    return [
        _Test(
            of_look,
            metric,
            ratio(a, b, metric, rules.min_runs, 1 - rules.alpha),
            refusal(found.refusals, metric),
            found.apart.get(root_of(metric), 0.0),
        )
        for metric in metrics
    ]


def _family(tests: Sequence["_Test"]) -> list["_Judged"]:
    """Adjusts p-values and levels of one family by Holm, whose tests depend: pairs share backends and runs.

    A method that exploits this (Shaffer 1986) needs equality to be transitive, which "within 2%" is not.
    """

    def adjusted(p: Callable[["_Test"], float]) -> list[tuple[float, float]]:
        values = [p(test) for test in tests]
        alphas = [test.rules.alpha for test in tests]  # runs that are compared may have unlike ones
        levels_at = {alpha: holm_levels(values, alpha) for alpha in set(alphas)}
        return list(zip(holm(values), (levels_at[alpha][i] for i, alpha in enumerate(alphas)), strict=True))

    apart, same = adjusted(lambda test: test.p_apart), adjusted(lambda test: test.p_same)
    return [_Judged(*beyond, *within, len(tests)) for beyond, within in zip(apart, same, strict=True)]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A verdict with its reason. `lacks` and `runs_needed` are of a pair without enough runs."""

    kind: ComparisonVerdict
    why: str
    lacks: str = ""
    runs_needed: int | None = None


@dataclass(frozen=True, slots=True)
class _Judged:
    """Adjusted p of one test as a member of its family, and the level that it has to reach."""

    p_apart: float
    level_apart: float
    p_same: float
    level_same: float
    members: int


@dataclass(frozen=True, slots=True)
class _Test:
    pairing: Pairing
    metric: str
    test: Ratio
    refused: str | None
    apart: float = 0.0  # by which share unequal work may move the ratio

    @property
    def rules(self) -> Rules:
        return self.pairing.rules

    @property
    def primary(self) -> bool:
        return self.metric == self.rules.primary

    @property
    def counts(self) -> bool:
        """Whether the test is a member of its family."""
        return self.test.shift is not None and self.refused is None

    @property
    def sides(self) -> tuple[Series, Series]:
        return self.pairing.a, self.pairing.b

    @property
    def limits(self) -> Limits:
        labels = [side.label for side in self.sides]
        return Limits.of_work(self.rules, labels, [self.pairing.load.label], self.metric, self.apart)

    @property
    def p_apart(self) -> float:
        return 1.0 if self.test.shift is None else self.limits.p_apart(self.test.shift)

    @property
    def p_same(self) -> float:
        return 1.0 if self.test.shift is None else self.limits.p_same(self.test.shift)

    def finding(self, judged: _Judged | None) -> PairVerdict:
        interval = detectable = family_ratio = None
        a, b = self.sides
        shift, alpha = self.test.shift, self.rules.alpha
        verdict = self._verdict(judged)
        if shift is not None:
            interval = exponential(shift.interval(1 - alpha))
            strictest = alpha / (judged.members if judged else 1)
            reach = shift.detectable(alpha=strictest)
            detectable = (1 + self.limits.floor) * math.exp(reach) - 1 if reach < MOST_DETECTABLE else None
        if shift is not None and judged is not None:
            family_ratio = exponential(shift.interval(1 - _level(verdict.kind, judged)))
        return PairVerdict(
            a=a.label,
            b=b.label,
            load=self.pairing.load,
            metric=self.metric,
            better=better_of(self.metric) or "lower",
            verdict=verdict.kind,
            why=verdict.why,
            lacks=verdict.lacks,
            runs_needed=verdict.runs_needed,
            runs=self.test.runs,
            measured=(a.measured, b.measured),
            failed=self._failed,
            left_out=self._out,
            paired=self.test.paired,
            method=self.test.method,
            ratio=interval,
            family_ratio=family_ratio,
            difference=self.test.difference,
            p_holm=judged.p_apart if judged else None,
            p_same_holm=judged.p_same if judged else None,
            smallest_detectable=detectable,
            chance=self._chance(judged) if verdict.kind == "not enough runs" else None,
            levels=self._levels(judged) if self.primary else None,
            primary=self.primary,
        )

    def _verdict(self, judged: _Judged | None) -> _Verdict:
        if self.refused:
            return _Verdict("not comparable", self.refused)
        if self.test.shift is None or judged is None:
            return self._missing()
        if few := self._too_few_independent():
            return _Verdict("not enough runs", few, few)
        verdict = self._at_least(self._measured(judged))
        if flattered(verdict.kind, self._failed):
            return _Verdict("not comparable", f"{self._failures}: its remaining runs would flatter it")
        remarks = filter(None, [verdict.why, *self._out_words, self._failures])
        return replace(verdict, why="; ".join(remarks))

    def _too_few_independent(self) -> str:
        """A sentence if correlated blocks of one start are worth too few independent ones; else ""."""
        if not self.test.of_one_start:
            return ""
        if self.test.method == "pooled":
            needed = samples_needed(100 * (share_of(self.metric) or 0))
            return f"each block needs a percentile of its own: {needed} requests or more (--requests)"
        if not self.test.blocks:
            return "blocks of one start are compared in pairs, and none has a partner"
        values = [value for start in self.test.blocks for value in start]
        count, independent = len(values), len(values) * independent_share(values)
        if independent >= LEAST_INDEPENDENT:
            return ""
        worth = f"{count} blocks are worth {independent:.2g} independent ones, {LEAST_INDEPENDENT} are needed"
        side = next(side for side in self.sides if side.unit == "blocks")
        begun, block_s = side.begun, side.seconds("block")
        if len(begun) < 2 or not block_s:
            return worth
        noise_s = correlation_steps(values) * (max(begun) - min(begun)) / (len(begun) - 1) / 1e9
        needed_s = max(INDEPENDENT_AFTER * noise_s / 2, 2 * block_s)
        return (
            f"{worth}: more blocks would do, or, since noise may last {short(noise_s, 2)} s, blocks of "
            f"{short(needed_s, 2)} s (--requests, {short(needed_s / block_s, 2)} times as many)"
        )

    def _at_least(self, verdict: _Verdict) -> _Verdict:
        """Refuses a verdict that calls a server worse or the same although it could have done more."""
        idle = next((index for index, side in enumerate(self.sides) if side.at_least), None)
        if idle is None or kind_of(self.metric) != RATES:
            return verdict
        assert self.test.shift is not None
        a_ahead = (self.test.shift.estimate < 0) == (better_of(self.metric) == "lower")
        served = f"{self.sides[idle].label} served all that was sent"
        if verdict.kind == "same" or a_ahead != (idle == 0):
            return _Verdict("not comparable", f"{served}: what more it can do is not known")
        return replace(verdict, why=f"{verdict.why}; {served} and may do more")

    def _measured(self, judged: _Judged) -> _Verdict:
        """The verdict from the runs that have a figure."""
        assert self.test.shift is not None
        alpha, limits = self.rules.alpha, self.limits
        span = exponential(self.test.shift.interval(1 - alpha))
        over = f"over {self.test.runs_words(self.rules.named(self.sides))}"
        if judged.p_apart < alpha:
            better = (span.estimate < 1) == (better_of(self.metric) == "lower")
            words, floor = words_apart(span, limits.floor)
            why = f"{words} {over}, beyond the floor of {floor}{self._unequal}"
            return _Verdict("faster" if better else "slower", why)
        if judged.p_same < alpha:
            words, margin = words_apart(span, limits.same)
            return _Verdict("same", f"{words} {over}, within {margin}")
        needed = _runs_needed(self.test, limits, alpha / judged.members)
        words, floor, margin = words_apart(span, limits.floor, limits.same)
        lacks = self._undecided(span, judged, needed, floor, margin)
        return _Verdict("not enough runs", f"{words} {over}: {lacks}", lacks, needed)

    def _chance(self, judged: _Judged | None) -> float | None:
        """Chance of a verdict by the last look; None without a later one."""
        rules, runs = self.rules, min(self.test.runs)
        more = (rules.looks[-1] - rules.last_look) // rules.blocks if rules.looks and rules.last_look else 0
        if self.test.shift is None or judged is None or not more:
            return None
        limits = self.limits
        same = None if limits.floor > limits.same else math.log1p(limits.same)
        prospect = Prospect(math.log1p(limits.floor), same, judged.level_apart, judged.level_same)
        return prospect.chance(self.test.shift, runs, runs + more, 1 if self.test.paired else 2)

    def _levels(self, judged: _Judged | None) -> Levels | None:
        if set(self.test.units) != {"starts"} or self.test.shift is None or judged is None:
            return None
        costs = Costs(*(sum(side.seconds(part) for side in self.sides) for part in ("block", "start")))
        room = _room(self.test, self.limits)
        most = self.rules.looks[-1] // self.rules.blocks if self.rules.looks else MOST_STARTS
        return levels(self.test.blocks, costs, room, self.rules.alpha / judged.members, most)

    def _undecided(
        self, span: Interval, judged: _Judged, needed: int | None, floor_words: str, margin: str
    ) -> str:
        limits, members = self.limits, judged.members
        floor, same = limits.floor, limits.same
        more, many = self.test.each(f"{needed} "), self.test.each()
        advice = f"about {more} would decide" if needed else f"very many {many} would be needed"
        least = self.test.shift.least if self.test.shift and not needed else 0.0
        if 0 < _room(self.test, limits) < 2 * least:  # at 95%
            advice = "the files print too few digits to decide"
        family = f"not as one of {members} comparisons; {advice}"
        if span.low > 1 + floor or span.high < 1 / (1 + floor):
            return f"beyond {floor_words} by itself, but {family}"
        if floor > same:
            why = self._unequal or ", by which this machine differs from itself"
            return f"not beyond {floor_words}{why}; {advice}"
        if 1 / (1 + same) <= span.low and span.high <= 1 + same:
            return f"within {margin} by itself, but {family}"
        beyond = "" if floor_words == margin else f" {floor_words}"
        return f"neither beyond{beyond} nor within {margin}{self._unequal}; {advice}"

    @property
    def _unequal(self) -> str:
        return f" (unequal work may be {share_words(self.apart)} of it)" if self.apart else ""

    @property
    def _failed(self) -> tuple[int, int]:
        a, b = self.sides
        return a.failures(self.metric), b.failures(self.metric)

    @property
    def _failures(self) -> str:
        """`vllm: 2 of 5 failed`, per side; "" if none failed."""
        sides = ((side.label, side.failure_words(self.metric)) for side in self.sides)
        return ", ".join(f"{label}: {words}" for label, words in sides if words)

    @property
    def _out(self) -> tuple[dict[str, int], dict[str, int]]:
        """Number of runs of a and of b that are left out, by reason."""
        if self.refused:
            return {}, {}
        a, b = (Counter(side.doubtful(kind_of(self.metric)).values()) for side in self.sides)
        return dict(a), dict(b)

    @property
    def _out_words(self) -> list[str]:
        counts = zip(self.sides, self._out, strict=True)
        return [f"{side.label}: {left_out_words(out, side.measured)}" for side, out in counts if out]

    def _missing(self) -> _Verdict:
        if self.test.zero:
            why = "a value is not above 0: there is no ratio"
            return _Verdict("not enough runs", why, why)
        counts = f"{self.test.counts(self.rules.named(self.sides))}, {self.rules.min_runs} are needed"
        if self._failures:
            return _Verdict("not comparable", f"{self._failures}; {counts}")
        bad = [side for side in self.sides if side.invalid]
        invalid = [f"{len(side.invalid)} of {side.label} INVALID ({side.invalid_codes})" for side in bad]
        nulls = [cell.null_reasons for side in self.sides for cell in side.cells]
        reasons = [null[self.metric] for null in nulls if self.metric in null][:1]
        why = "; ".join([counts, *self._out_words, *invalid, *reasons])
        return _Verdict("not enough runs", why, why, self.rules.min_runs)


def _level(verdict: ComparisonVerdict, judged: _Judged) -> float:
    """Level of the interval behind a verdict; if nothing is decided, the stricter of the two."""
    levels: Mapping[str, float] = {
        "faster": judged.level_apart,
        "slower": judged.level_apart,
        "same": judged.level_same,
    }
    return levels.get(verdict, min(judged.level_apart, judged.level_same))


def _runs_needed(test: Ratio, limits: Limits, alpha: float) -> int | None:
    """Fewest runs whose interval would be clear of a limit, if estimate and spread stay; None: too many."""
    assert test.shift is not None
    have, room = min(test.runs), _room(test, limits)
    spread = test.shift.error * have**0.5
    for runs in range(have + 1, MOST_RUNS_ADVISED + 1):
        freedom = runs - 1 if test.paired else 2 * (runs - 1)
        error = max(spread / runs**0.5, test.shift.least)
        if t_quantile(1 - alpha / 2, freedom) * error < room:
            return runs
    return None


def _room(test: Ratio, limits: Limits) -> float:
    """Distance in log ratio from the estimate to a limit that intervals can be clear of; none if below 0."""
    assert test.shift is not None
    away = abs(test.shift.estimate)
    beyond = away - math.log1p(limits.floor)
    return beyond if limits.floor > limits.same else max(beyond, math.log1p(limits.same) - away)


def left_out_words(out: Mapping[str, int], measured: int) -> str:
    """`1 of 4 runs left out: not steady`."""
    return f"{sum(out.values())} of {measured} runs left out: {', '.join(out)}"
