"""The metrics of a cell by their names and paths, from the declarations."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import get_type_hints

from msgspec.structs import replace

from harness.model.figures import ClassStats
from harness.model.metric import Better, Distortion, Family, Metric
from harness.model.metrics import Measured


def _declared() -> Iterator[tuple[str, Metric]]:
    for name, hint in get_type_hints(Measured, include_extras=True).items():
        for meta in getattr(hint, "__metadata__", ()):
            if meta.extra:
                yield name, replace(meta.extra["metric"], name=name)


METRICS: Mapping[str, Metric] = MappingProxyType(dict(_declared()))

# What a capacity search finds, by the name in a history: figures of all its probes, and of no cell.
CAPACITIES: Mapping[str, Metric] = MappingProxyType(
    {
        name: Metric(
            name=name,
            short="capacity",
            title="Capacity",
            about="Highest load that keeps the limits, as a search found it.",
            family="rate",
            own_unit=unit,
            whole=whole,
        )
        for name, unit, whole in (
            ("capacity_requests_per_s", "requests/s", False),
            ("capacity_in_flight", "in flight", True),
        )
    }
)

# By the dotted path of a value in a cell, such as `ttft_ms.p50`: what a verdict can be about.
VERDICT_METRICS: Mapping[str, Better] = MappingProxyType(
    {path: metric.better for metric in METRICS.values() if metric.better for path in metric.paths}
)


# Keys of a cell with figures of some of its requests, by the name of their class.
CLASSES = ("by_kind", "by_turn", "by_depth")
_OF_CLASSES = tuple(f"{name}." for name in METRICS if name in ClassStats.__struct_fields__)


def of_class(path: str) -> tuple[str, str]:
    """Splits a path into class and metric: `by_depth.4k` and `ttft_ms.p50`; class "" for the whole cell."""
    key, _, rest = path.partition(".")
    if key not in CLASSES:
        return "", path
    name, _, metric = rest.partition(".")
    return f"{key}.{name}", metric


def root_of(path: str) -> str:
    """Name of the metric without class and statistic: `ttft_ms` of `by_depth.4k.ttft_ms.p50`."""
    return of_class(path)[1].partition(".")[0]


def better_of(path: str) -> Better | None:
    """Direction of better values at the path; None if no verdict can be about them."""
    classes, metric = of_class(path)
    if classes and not metric.startswith(_OF_CLASSES):
        return None
    return VERDICT_METRICS.get(metric)


def family(wanted: Family) -> list[Metric]:
    return [metric for metric in METRICS.values() if metric.family == wanted]


def distorted_by(*causes: Distortion) -> tuple[str, ...]:
    return tuple(name for name, metric in METRICS.items() if set(causes) & set(metric.distorted_by))


# What [slo] can limit: only what each request has can be within a limit.
SLO_METRICS = tuple(metric.name for metric in family("latency") if metric.per_request)
