"""All of a run: estimates, a finding per pair, load and metric, and the rank lines."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from harness.compare.noise import noise
from harness.compare.observed import Cell, LoadKey, Series, loads, series
from harness.compare.ranking import rank
from harness.compare.rules import Rules
from harness.compare.verdict import judge
from harness.spec.measures import MEASURES
from harness.stats.runs import Interval, geometric_interval, mean_interval


def compare(cells: Sequence[Cell], rules: Rules) -> dict[str, Any]:
    """The keys of summary.json that are about several cells. `noise` is of backends measured twice."""
    findings, rankings = [], []
    estimates: list[dict[str, Any]] = []
    points = loads(cells)
    for load in points:
        rows = series(cells, load)
        estimates += _estimates(rows, load)
        here = [finding for a, b in combinations(rows, 2) for finding in judge(a, b, load, rules)]
        findings += here
        for metric in rules.metrics:
            about = [finding for finding in here if finding.metric == metric]
            if ranking := rank(about, _middles(estimates, load, metric), load, metric, rules):
                rankings.append(ranking)
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


def _estimates(rows: Sequence[Series], load: LoadKey) -> Iterator[dict[str, Any]]:
    for row in rows:
        for metric in MEASURES:
            values = np.array(list(row.values(metric).values()))
            if len(values):
                yield {
                    "label": row.label,
                    "load": load.as_json(),
                    "metric": metric,
                    "interval": _interval(values),
                    "runs": len(values),
                }


def _interval(values: np.ndarray) -> list[float | None]:
    """One run says nothing about the next: its interval has no ends."""
    if len(values) < 2:
        return [None, float(values[0]), None]
    made: Interval = (geometric_interval if (values > 0).all() else mean_interval)(values)
    return [made.low, made.estimate, made.high]


def _middles(estimates: Sequence[Mapping[str, Any]], load: LoadKey, metric: str) -> dict[str, float]:
    return {
        one["label"]: one["interval"][1]
        for one in estimates
        if one["metric"] == metric and one["load"] == load.as_json()
    }
