"""Curves of what was sampled during a cell, below its requests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model import CellResult, LoadNodeUse
from harness.model.numbers import number, with_unit
from harness.records.series import Samples, Telemetry, node_series, unbroken
from harness.report.plots.style import MUTED, PALETTE

BLUE, ORANGE, GREEN, RED = PALETTE[:4]
_CPU_OWNERS = (
    ("engine", "server", BLUE),
    ("load generator", "client", ORANGE),
    ("engine of the same duet", "partner", GREEN),
)
DASHED = (0, (4, 1.5))
MOST_GPUS = 2  # with a curve of their own
# Of a curve: more cannot be distinguished, and hours of samples would make pictures of megabytes.
POINTS = 600

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    seconds: Floats
    values: Floats
    color: str
    dash: Any = "-"
    style: Literal["default", "steps-post"] = "default"


class Gauge(NamedTuple):
    """A value of each GPU."""

    field: str
    name: str
    dash: Any = "-"


_BUSY = (Gauge("utilisation_pct", "busy"), Gauge("dram_active_pct", "memory bandwidth", DASHED))
_POWER = Gauge("power_w", "")


class NodeGauge(NamedTuple):
    """A counter of each load node, and the unit of its rate."""

    counters: tuple[str, ...]
    axis: str
    unit: str
    scale: float = 1.0


_NODE_CPU = NodeGauge(("host.cpu_busy_s",), "load nodes\ncores", "cores")
_NODE_NETWORK = NodeGauge(
    ("host.net_received_bytes", "host.net_sent_bytes"), "load nodes\nMB/s", "MB/s", scale=1e-6
)


@dataclass(frozen=True, slots=True)
class Panel:
    axis: str
    curves: Sequence[Curve]
    words: str  # for those who cannot see it
    top: float = 0.0  # of the axis; 0: what the values need
    stacked: bool = False


def panels(cell: CellResult, telemetry: Telemetry, end_s: float) -> Iterator[Panel]:
    """Leaves out panels for which nothing was sampled."""
    gpus = cell.gpu.engine_gpus if cell.gpu else ()
    cpus = cell.host.cpus if cell.host else None
    curves = (
        _queue(telemetry, end_s),
        _kv_cache(telemetry, end_s),
        _memory(telemetry, end_s),
        _gpus(telemetry, gpus, end_s),
        _cpus(telemetry, cpus, end_s),
        _nodes(telemetry, _NODE_CPU, cell.load_nodes, end_s),
        _nodes(telemetry, _NODE_NETWORK, cell.load_nodes, end_s),
        _power(telemetry, gpus, end_s),
    )
    return (panel for panel in curves if panel is not None)


def _queue(telemetry: Telemetry, end_s: float) -> Panel | None:
    curves = [
        Curve(name, *_visible(telemetry.get(f"engine.{name}"), end_s), color, dash, style="steps-post")
        for name, color, dash in (("running", BLUE, "-"), ("waiting", RED, DASHED))
    ]
    return _panel("engine's\nrequests", curves)


def _kv_cache(telemetry: Telemetry, end_s: float) -> Panel | None:
    samples = telemetry.get("engine.kv_use")
    curve = Curve("KV cache in use", *_visible(samples, end_s), GREEN, style="steps-post")
    return _panel("KV cache\n%", [replace(curve, values=100 * curve.values)], "%", top=105.0)


def _memory(telemetry: Telemetry, end_s: float) -> Panel | None:
    seconds, used_bytes = _visible(telemetry.get("server.rss_bytes"), end_s)
    return _panel("memory\nGiB", [Curve("engine's memory", seconds, used_bytes / 2**30, BLUE)], "GiB")


def _gpus(telemetry: Telemetry, gpus: Sequence[int], end_s: float) -> Panel | None:
    curves = [curve for gauge in _BUSY for curve in _by_gpu(telemetry, gpus, gauge, end_s, panels=len(gpus))]
    return _panel("GPU\n%", curves, "%", top=105.0)


def _by_gpu(
    telemetry: Telemetry, gpus: Sequence[int], gauge: Gauge, end_s: float, *, panels: int
) -> list[Curve]:
    """A curve each, or their sum divided by `panels` if there are too many to be distinguished.

    The sum is of the time in which all of them were read: it ends where one is lost.
    """
    curves = [
        Curve(
            f"GPU {index} {gauge.name}".strip(),
            *_visible(telemetry.get(f"gpu.{index}.{gauge.field}"), end_s),
            color,
            gauge.dash,
        )
        for index, color in zip(gpus, cycle(PALETTE), strict=False)
    ]
    if len(gpus) <= MOST_GPUS or any(not len(curve.seconds) for curve in curves):
        return curves
    first, last = max(curve.seconds[0] for curve in curves), min(curve.seconds[-1] for curve in curves)
    grid = curves[0].seconds[(curves[0].seconds >= first) & (curves[0].seconds <= last)]
    total = np.sum([np.interp(grid, curve.seconds, curve.values) for curve in curves], axis=0)
    title = f"{len(gpus)} GPUs {gauge.name}".strip() + (", mean" if panels > 1 else ", sum")
    return [Curve(title, grid, total / panels, curves[0].color, gauge.dash)]


def _cpus(telemetry: Telemetry, cpus: float | None, end_s: float) -> Panel | None:
    """Cores, from bottom to top: the engine's, the load generator's, its partner's in a duet, all others'."""
    grid, others = _per_second(telemetry.get("host.cpu_busy_s"), end_s)
    if len(grid) < 2:
        return None
    curves = []
    for owner, series, color in _CPU_OWNERS:
        samples = _per_second(telemetry.get(f"{series}.cpu_s"), end_s)
        if len(samples[0]):
            curves.append(Curve(owner, grid, np.interp(grid, *samples), color))
            others = others - curves[-1].values
    curves.append(Curve("other work", grid, np.maximum(others, 0), MUTED))
    return _panel("CPU\ncores", curves, "cores", top=1.05 * (cpus or 0.0), stacked=True)


def _nodes(
    telemetry: Telemetry, gauge: NodeGauge, nodes: Sequence[LoadNodeUse], end_s: float
) -> Panel | None:
    """A curve each; of many nodes those of the busiest."""
    rates = [(node.address, _summed(telemetry.of(node_series(node.address)), gauge, end_s)) for node in nodes]
    known = sorted(
        (curve for curve in rates if len(curve[1][0])), key=lambda curve: -float(curve[1][1].max())
    )
    shown = [
        Curve(address, seconds, gauge.scale * values, color)
        for (address, (seconds, values)), color in zip(known, PALETTE, strict=False)
    ]
    return _panel(gauge.axis, shown, gauge.unit)


def _summed(own: Telemetry, gauge: NodeGauge, end_s: float) -> tuple[Floats, Floats]:
    """The counters of a node are read together."""
    rates = [_per_second(own.get(name), end_s) for name in gauge.counters]
    return rates[0][0], np.sum([values for _, values in rates], axis=0)


def _power(telemetry: Telemetry, gpus: Sequence[int], end_s: float) -> Panel | None:
    curves = _by_gpu(telemetry, gpus, _POWER, end_s, panels=1)
    packages = telemetry.matching("cpu", "energy_j")
    for (package, samples), color in zip(packages, cycle(PALETTE), strict=False):
        curves.append(Curve(f"CPU package {package}", *_per_second(samples, end_s), color, DASHED))
    return _panel("power\nW", curves, "W")


def _panel(
    axis: str, curves: Sequence[Curve], unit: str = "", *, top: float = 0.0, stacked: bool = False
) -> Panel | None:
    drawn = [curve for curve in curves if len(curve.seconds) > 1]  # a line needs two samples
    if not drawn:
        return None
    tops = [with_unit(f"{curve.name} up to {number(float(curve.values.max()))}", unit) for curve in drawn]
    return Panel(axis, [_thinned(curve) for curve in drawn], ", ".join(tops), top, stacked)


def _thinned(curve: Curve) -> Curve:
    """Means of as many samples each, in `POINTS` points."""
    count = len(curve.seconds)
    if count <= POINTS:
        return curve
    starts = np.arange(POINTS) * count // POINTS
    means = np.add.reduceat(curve.values, starts) / np.diff([*starts, count])
    return replace(curve, seconds=curve.seconds[starts], values=means)


def _visible(samples: Samples, end_s: float) -> tuple[Floats, Floats]:
    inside = samples.between(0, int(end_s * 1e9))
    return inside.at_ns / 1e9, inside.values


def _per_second(samples: Samples, end_s: float) -> tuple[Floats, Floats]:
    """The rate between each two samples, at the later one."""
    at_s, values = samples.at_ns / 1e9, unbroken(samples.values)
    rates = np.diff(values) / np.maximum(np.diff(at_s), 1e-9)
    inside = (at_s[1:] >= 0) & (at_s[1:] <= end_s)
    return at_s[1:][inside], rates[inside]
