"""Table of docs/metrics.md: every metric of a cell."""

from collections.abc import Iterator

from harness.model import METRICS, SLO_METRICS, Metric


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| metric | definition | shown as | verdicts | `[slo]` |"
    yield "|---|---|---|---|---|"
    for metric in METRICS.values():
        slo = "yes" if metric.name in SLO_METRICS else "no"
        verdicts = f"{metric.better} is better" if metric.better else "none"
        yield f"| `{metric.name}` | {metric.about} | {_shown(metric)} | {verdicts} | {slo} |"


def _shown(metric: Metric) -> str:
    return f"{metric.short}, {metric.unit}" if metric.unit else metric.short
