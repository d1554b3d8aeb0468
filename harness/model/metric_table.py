"""The metrics of a cell by their names and paths, from the declarations."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import get_type_hints

from msgspec.structs import replace

from harness.model.metric import Better, Distortion, Family, Metric
from harness.model.metrics import Measured


def _declared() -> Iterator[tuple[str, Metric]]:
    for name, hint in get_type_hints(Measured, include_extras=True).items():
        for meta in getattr(hint, "__metadata__", ()):
            if meta.extra:
                yield name, replace(meta.extra["metric"], name=name)


METRICS: Mapping[str, Metric] = MappingProxyType(dict(_declared()))

# By the dotted path of a value in a cell, such as `ttft_ms.p50`: what a verdict can be about.
VERDICT_METRICS: Mapping[str, Better] = MappingProxyType(
    {path: metric.better for metric in METRICS.values() if metric.better for path in metric.paths}
)


def family(wanted: Family) -> list[Metric]:
    return [metric for metric in METRICS.values() if metric.family == wanted]


def distorted_by(*causes: Distortion) -> tuple[str, ...]:
    return tuple(name for name, metric in METRICS.items() if set(causes) & set(metric.distorted_by))


# What [slo] can limit: only what each request has can be within a limit.
SLO_METRICS = tuple(metric.name for metric in family("latency") if metric.per_request)
