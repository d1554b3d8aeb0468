"""Rows that a gate fails on: worse figures, worse tails, more failures, and whatever could not be decided.

A gate that decides nothing has not passed, so there is a row for that too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from harness.metrics.distribution import PERCENTILES, highest_percentile
from harness.model import (
    CapacityPair,
    CellResult,
    ComparedFigure,
    GateKind,
    GateRow,
    LoadPoint,
    MissingFigure,
    PairVerdict,
    RunComparison,
    known,
)
from harness.model.json_path import number_at
from harness.stats.binomial import more_often
from harness.verdicts.capacity_pairs import ratio_words
from harness.verdicts.pairs import Pairing
from harness.verdicts.ratio import share_of
from harness.verdicts.run_values import Series

TAIL = "e2e_ms"
LEVEL = 0.05
_OURS = ("lost", "no_socket")  # outcomes that say nothing about the engine
LEAST_RUNS = 3  # fewest runs that must all pause while none of the baseline's does


def tail_metric(a: Series, b: Series, declared: Sequence[str]) -> str | None:
    """`e2e_ms.p99`, or the highest percentile that both sides have enough requests for.

    None if the scenario declares that one or a higher one, or if only the median is left. The number of
    requests decides, never their times. Of figures alone none can be pooled: it is the highest that each run
    of `b`, the baseline, has.
    """
    if any(cell.imported and cell.imported.level == "summary" for cell in (*a.cells, *b.cells)):
        figures = {p: [number_at(cell, f"{TAIL}.p{p}") for cell in b.cells] for p in PERCENTILES}
        highest = max((p for p, found in figures.items() if found and None not in found), default=50)
    else:
        highest = highest_percentile(min(sum(map(_answers, side.cells)) for side in (a, b)))
    already = (share_of(name) for name in declared if name.startswith(f"{TAIL}."))
    if highest == 50 or any(share is not None and 100 * share >= highest for share in already):
        return None
    return f"{TAIL}.p{highest}"


def _answers(cell: CellResult) -> int:
    """Answers that latencies are of: none of a user who would have hung up. Cells of earlier versions have no
    sample."""
    return cell.requests.ok if cell.sample is None else cell.sample.answers


@dataclass(frozen=True, slots=True)
class Place:
    """The backend of a new run that a row is about."""

    run: str
    label: str

    def row(
        self, kind: GateKind, why: str, load: LoadPoint | None = None, metric: str | None = None
    ) -> GateRow:
        return GateRow(kind=kind, run=self.run, label=self.label, load=load, metric=metric, why=why)

    def findings(self, findings: Sequence[ComparedFigure]) -> Iterator[GateRow]:
        """Yields slower figures, load points without any comparison, and an undecided primary metric."""
        if not findings:
            yield self.row("not compared", "no load point in common")
        for load, here in groupby(findings, key=attrgetter("load")):
            figures = list(here)
            if nothing_compared(figures):
                yield self.row("not compared", figures[0].why, load)
                continue
            for figure in figures:
                if kind := _kind(figure):
                    yield self.row(kind, figure.why, load, figure.metric)

    def capacity(self, found: CapacityPair) -> Iterator[GateRow]:
        """Yields a capacity that surely fell, and one without a verdict for a reason.

        What only the intervals leave undecided passes: two searches of equal engines are.
        """
        if found.verdict == "not comparable":
            yield self.row("not compared", found.why)
        elif found.verdict == "fewer":
            yield self.row("slower", f"carries less within the limits: {ratio_words(found)}")
        elif found.why:
            yield self.row("undecided", found.why)

    def counts(
        self, new: Series, old: Series, load: LoadPoint | None, level: float = LEVEL
    ) -> Iterator[GateRow]:
        """Yields more failures at one load point, which no median shows, or at those that two searches found
        to be carried: a limit that 5% may miss hides that 3% fail.

        `level`: chance of a false "more requests failed".
        """
        (failed, sent), (before, sent_before) = (
            failed_of((*side.cells, *side.invalid)) for side in (new, old)
        )
        if failed:
            where = "" if load else ", at loads that both carry"
            counts = f"{failed} of {sent} requests failed, {before} of {sent_before} of the baseline{where}"
            if fail_more((failed, sent), (before, sent_before), level):
                yield self.row("failures", counts, load)
            elif not before:
                yield self.row("undecided", f"{counts}: too few requests to say whether more fail now", load)


def _kind(figure: PairVerdict) -> GateKind | None:
    if figure.verdict == "slower":
        return "slower"
    return "undecided" if figure.primary and figure.verdict in ("not enough runs", "not comparable") else None


def nothing_compared(findings: Sequence[PairVerdict]) -> bool:
    return all(finding.verdict == "not comparable" for finding in findings)


def fail_more(now: tuple[int, int], before: tuple[int, int], level: float = LEVEL) -> bool:
    """Whether more requests fail than before, by two results of `failed_of`; wrong by `level` at most."""
    return more_often(*now, *before) < level


def failed_of(cells: Iterable[CellResult]) -> tuple[int, int]:
    """Number of requests that failed, and of all that ended in an answer or a failure.

    A schema that the engine refuses counts: a version that took it would be better. Left out is what the
    load generator failed to send or lost.
    """
    counts = [cell.requests for cell in cells]
    ours = sum(count.outcomes.get(name, 0) for count in counts for name in _OURS)
    failed = sum(count.failed for count in counts) - ours
    return failed, failed + sum(count.ok for count in counts)


def stalls(places: Sequence[tuple[Place, Pairing]]) -> Iterator[GateRow]:
    """Yields the load points where the engine paused in each run, and in none of the baseline's.

    `places`: all load points of all pairs. Equal engines show more than 20 times as many such points as are
    expected of them in at most 5% of all gates (Markov's inequality), even where pauses at several loads
    have one cause. Fewer points than that decide nothing.
    """
    watched = [(gated, pair.load, _pauses_ms(pair.a), _pauses_ms(pair.b)) for gated, pair in places]
    compared = [row for row in watched if min(len(row[2]), len(row[3])) >= LEAST_RUNS]
    expected = sum(_chance(len(now), len(then)) for _, _, now, then in compared)
    new = [row for row in compared if min(row[2]) > 0 and not any(row[3])]
    for gated, load, now, then in new:
        why = f"the engine paused in each of {len(now)} runs, for {max(now):.0f} ms at the longest"
        if expected <= LEVEL * len(new):
            yield gated.row("stalls", why, load)
        else:
            none = f"and in none of the baseline's {len(then)}"
            chance = f"{len(new)} of {len(compared)} load points like this may be chance"
            yield gated.row("undecided", f"{why}, {none}; {chance}", load)


def _chance(runs: int, others: int) -> float:
    """Chance that each of `runs` pauses and none of `others`, at most: at a share that makes it likeliest."""
    share = runs / (runs + others)
    return share**runs * (1 - share) ** others


def _pauses_ms(side: Series) -> list[float]:
    """The longest pause of the engine in each run, 0 if none stood out; [] if a run did not record them."""
    if any(known(cell.standstill) is None for cell in side.cells):
        return []
    pauses = (known(cell.engine_stall) for cell in side.cells)
    return [pause.lasted_ms if pause else 0.0 for pause in pauses]


def not_allowed(document: RunComparison) -> list[MissingFigure]:
    """Missing figures that were not allowed to be missing: a gate fails on each."""
    return [figure for figure in document.missing if not figure.allowed]


def refused(document: RunComparison) -> bool:
    """Whether a pair could not be compared in anything at some load point, so that no gate may pass."""
    return not document.pairs or any(
        pair.capacity.verdict == "not comparable"
        if pair.capacity is not None
        else not pair.findings
        or any(nothing_compared(list(here)) for _, here in groupby(pair.findings, key=attrgetter("load")))
        for pair in document.pairs
    )
