"""Which figures are drawn against the load, and how a value gets its axis."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.axis import Axis

from harness.report.plots.style import log_ticks, logarithmic
from harness.report.view import Group, Spread

Series = dict[str, dict[float, Spread]]  # label → load → value


@dataclass(frozen=True, slots=True)
class Panel:
    path: str  # in a cell of summary.json
    axis: str
    scale: float = 1.0
    ideal: str = ""  # path of the best possible value
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    title: str
    panels: tuple[Panel, ...]


HIT_RATE = Panel(
    "prefix_cache_hit_rate", "cached share of prompt tokens, %", 100, "prefix_cache_ideal", (-3, 103)
)

CHARTS = (
    Chart("ttft-load", "Time to first token",
          (Panel("ttft_ms.p50", "TTFT p50, ms"), Panel("ttft_ms.p90", "TTFT p90, ms"))),
    Chart("throughput-load", "Throughput", (Panel("output_tokens_per_s", "output tokens/s"),)),
    Chart("cache-load", "Prefix-cache hits", (HIT_RATE,)),
)  # fmt: skip


def series(groups: Sequence[Group], path: str) -> Series:
    found: Series = {}
    for group in groups:
        for row in group.rows:
            if spread := row.spread(path):
                found.setdefault(row.label, {})[group.point.value] = spread
    return found


def set_limits(axes: Axes, axis: Axis, panel: Panel, values: Series) -> None:
    """From zero, unless the backends are so far apart that the small ones could not be read."""
    set_view = axes.set_xlim if axis is axes.xaxis else axes.set_ylim
    low, high = min(_ends(values)) * panel.scale, max(_ends(values)) * panel.scale
    if panel.limits:
        set_view(*panel.limits)
    elif logarithmic(low, high):
        log_ticks(axes, axis)
        set_view(low / 1.5, high * 1.5)
    else:
        set_view(0, high * 1.12 or 1)


def _ends(values: Series) -> Iterator[float]:
    for by_load in values.values():
        for spread in by_load.values():
            yield from (spread.low, spread.high)
