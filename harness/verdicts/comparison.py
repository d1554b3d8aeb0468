"""Compares everything in a run: estimates, a verdict per pair, load and metric, and rank lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from harness.model import (
    VERDICT_METRICS,
    CellResult,
    Estimate,
    LoadPoint,
    Noise,
    PairVerdict,
    Ranking,
    VerdictRules,
)
from harness.model.grouping import grouped
from harness.verdicts.ranking import caveats_of, rank, weights_of, with_caveats
from harness.verdicts.ratio import estimate
from harness.verdicts.rules import Rules
from harness.verdicts.run_values import Samples, Series, loads, series
from harness.verdicts.sequential import find_by_looks

NO_SAMPLES: Mapping[str, Samples] = MappingProxyType({})


class Compared(NamedTuple):
    """Parts of summary.json about several cells. `noise` is of backends measured against themselves."""

    comparison: tuple[PairVerdict, ...]
    noise: tuple[Noise, ...]
    estimates: tuple[Estimate, ...]
    ranking: dict[str, str]
    rankings: tuple[Ranking, ...]
    verdict_rules: VerdictRules


def compare(
    cells: Sequence[CellResult], rules: Rules, samples: Mapping[str, Samples] = NO_SAMPLES
) -> Compared:
    """Compares all pairs at all loads in all metrics.

    `samples` are by the name of a cell, for percentiles that its own requests are too few for.
    """
    rows = rows_of(cells, samples)
    points = list(rows)
    estimates = [found for here in rows.values() for found in _estimates(here, rules.metrics)]
    findings = find_by_looks(rows, rules)
    weights, caveats = weights_of(cells), caveats_of(cells)
    about = grouped(((finding.load, finding.metric), finding) for finding in findings)
    metrics = dict.fromkeys([*rules.metrics, *(finding.metric for finding in findings)])
    rankings = [
        with_caveats(ranking, caveats)
        for load in points
        for metric in metrics
        for ranking in rank(
            about.get((load, metric), ()), _middles(estimates, load, metric), load, metric, rules, weights
        )
    ]
    # Of the highest load, which tells engines apart.
    highest = grouped((ranking.metric, ranking.line) for ranking in rankings if ranking.load == points[-1])
    return Compared(
        tuple(findings),
        tuple(_noise(findings)),
        tuple(estimates),
        {metric: "; ".join(lines) for metric, lines in highest.items()},
        tuple(rankings),
        rules.record,
    )


def rows_of(cells: Sequence[CellResult], samples: Mapping[str, Samples]) -> dict[LoadPoint, list[Series]]:
    return {load: series(cells, load, samples) for load in loads(cells)}


def _estimates(rows: Sequence[Series], declared: Sequence[str]) -> Iterator[Estimate]:
    for row in rows:
        found = (estimate(row, metric) for metric in dict.fromkeys((*VERDICT_METRICS, *declared)))
        yield from filter(None, found)


def _middles(estimates: Sequence[Estimate], load: LoadPoint, metric: str) -> dict[str, float]:
    return {
        estimate.label: estimate.interval[1]
        for estimate in estimates
        if (estimate.metric, estimate.load) == (metric, load)
    }


def _noise(findings: Iterable[PairVerdict]) -> Iterator[Noise]:
    """Yields how far apart equal engines came out: the pairs `NAME#a` and `NAME#b` of a run with --aa.

    `difference` is its size as a share. `difference_upper` is the farther end of its interval, and the floor
    of later verdicts: one experiment does not know more exactly how far apart equal engines may be.
    """
    for finding in findings:
        name = finding.a.partition("#")[0]
        if finding.ratio is None or name != finding.b.partition("#")[0]:
            continue
        low, middle, high = finding.ratio
        yield Noise(
            backend=name,
            load=finding.load,
            metric=finding.metric,
            ratio=finding.ratio,
            difference=max(middle, 1 / middle) - 1,
            difference_upper=max(high, 1 / low) - 1,
            smallest_detectable=finding.smallest_detectable,
            verdict=finding.verdict,
        )
