"""All of a run: estimates, a finding per pair, load and metric, and the rank lines."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.compare.finding import Finding
from harness.compare.noise import noise
from harness.compare.observed import Cell, Samples, Series, loads, series
from harness.compare.ranking import rank, weights_of
from harness.compare.ratio import estimate
from harness.compare.rules import Rules
from harness.compare.sequential import find_by_looks
from harness.plan import LoadPoint
from harness.spec.measures import MEASURES

NO_SAMPLES: Mapping[str, Samples] = MappingProxyType({})


def compare(
    cells: Sequence[Cell], rules: Rules, samples: Mapping[str, Samples] = NO_SAMPLES
) -> dict[str, Any]:
    """The keys of summary.json that are about several cells. `noise` is of backends measured twice.

    `samples`: by the name of a cell, for percentiles that its own requests are too few for.
    """
    rows = rows_of(cells, samples)
    points = list(rows)
    estimates = [made for load in points for made in _estimates(rows[load], load)]
    findings = find_by_looks(rows, rules)
    weights = weights_of(cells)
    rankings = [
        ranking
        for load in points
        for metric in rules.metrics
        if (
            ranking := rank(
                _about(findings, load, metric),
                _middles(estimates, load, metric),
                load,
                metric,
                rules,
                weights,
            )
        )
    ]
    comparison = [finding.as_json() for finding in findings]
    return {
        "comparison": comparison,
        "noise": noise(comparison),
        "estimates": estimates,
        # At the highest load, which is the one that tells engines apart.
        "ranking": {ranking.metric: ranking.line for ranking in rankings if ranking.load == points[-1]},
        "rankings": [ranking.as_json() for ranking in rankings],
        "verdict_rules": rules.as_json(),
    }


def rows_of(cells: Sequence[Cell], samples: Mapping[str, Samples]) -> dict[LoadPoint, list[Series]]:
    return {load: series(cells, load, samples) for load in loads(cells)}


def _about(findings: Sequence[Finding], load: LoadPoint, metric: str) -> list[Finding]:
    return [finding for finding in findings if (finding.load, finding.metric) == (load, metric)]


def _estimates(rows: Sequence[Series], load: LoadPoint) -> Iterator[dict[str, Any]]:
    for row in rows:
        for metric in MEASURES:
            if found := estimate(row, metric):
                yield {
                    "label": row.label,
                    "load": load._asdict(),
                    "metric": metric,
                    "interval": list(found.interval),
                    "runs": found.runs,
                    "method": found.method,
                }


def _middles(estimates: Sequence[Mapping[str, Any]], load: LoadPoint, metric: str) -> dict[str, float]:
    return {
        one["label"]: one["interval"][1]
        for one in estimates
        if one["metric"] == metric and one["load"] == load._asdict()
    }
