"""All figures of a cell, each family of metrics once."""

from collections.abc import Callable, Sequence

import numpy as np

from harness.metrics import (
    abandonment,
    adapters,
    audio,
    cache_hits,
    classes,
    conservation,
    counts,
    course,
    goodput,
    images,
    latency,
    pace,
    quality,
    roles,
    sessions,
    slots,
    standstill,
    throughput,
    ttft_parts,
    usage,
)
from harness.metrics.distribution import latency_stats
from harness.metrics.view import CellView, Figures
from harness.model import METRICS, WITHOUT_TEXT
from harness.model.metric_table import root_of

# Also the order of the reasons for nulls in summary.json.
FAMILIES: Sequence[Callable[[CellView], Figures]] = (
    standstill.compute,
    cache_hits.compute,
    counts.compute,
    throughput.compute,
    latency.compute_of_reasoning,
    goodput.compute,
    course.compute,
    usage.compute,
    pace.compute,
    latency.compute,
    slots.compute,
    sessions.compute,
    quality.compute,
    classes.compute,
    adapters.compute,
    images.compute,
    audio.compute,
    roles.compute,
    ttft_parts.compute,
    abandonment.compute,
    conservation.compute,
)


def figures_of(cell: CellView) -> tuple[dict[str, object], dict[str, str]]:
    """The figures by key of `CellResult`, and the reason for each null by its dotted path."""
    figures: dict[str, object] = {}
    nulls: dict[str, str] = {}
    for compute in FAMILIES:
        family = cell.of(compute)
        figures |= family.by_key
        nulls |= family.nulls
    if (api := cell.facts.request.api) in WITHOUT_TEXT:
        nothing, why = _without_text(nulls, api)
        figures, nulls = figures | nothing, nulls | why
    return figures, nulls


def _without_text(nulls: dict[str, str], api: str) -> tuple[dict[str, object], dict[str, str]]:
    """Latencies and reasons for answers without text, where those of text would look like a fault of the
    server. Whether a cache held their prompts is known, or not, as it is of others."""
    of_text = [metric for metric in METRICS.values() if metric.of_text and metric.family != "share"]
    latencies = [lacking.name for lacking in of_text if lacking.family == "latency"]
    empty, reasons = latency_stats(np.zeros(0))
    reason = f"answers of {api} come whole: there is no first token, and none after it"
    paths = [f"{name}.{key}" for name in latencies for key in reasons]
    names = [lacking.name for lacking in of_text]
    return dict.fromkeys(latencies, empty), {
        path: reason for path in (*nulls, *paths, *names) if root_of(path) in names
    }
