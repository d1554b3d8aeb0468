"""How one backend changes with the load: speed-up, peak memory, and where its queue begins."""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

Json = Mapping[str, Any]

NO_QUEUE = 0.5  # requests waiting on average, below which nobody is said to queue


def scaling(cells: Iterable[Json]) -> dict[str, Any]:
    """By label, over closed-loop cells that are not INVALID; medians of the repeats. Null where not known."""
    by_label: dict[str, dict[float, list[Json]]] = {}
    for cell in cells:
        if cell["load"]["kind"] == "concurrency" and cell["validity"]["verdict"] != "INVALID":
            by_label.setdefault(cell["label"], {}).setdefault(cell["load"]["value"], []).append(cell)
    return {label: _backend(points) for label, points in by_label.items() if len(points) > 1}


def _backend(points: Mapping[float, list[Json]]) -> dict[str, Any]:
    loads = sorted(points)
    speeds = [_median(points[load], "output_tokens_per_s") for load in loads]
    waiting = [_median(points[load], "server", "waiting", "mean") for load in loads]
    base = speeds[0]
    free = [
        load for load, queued in zip(loads, waiting, strict=True) if queued is not None and queued < NO_QUEUE
    ]
    return {
        "concurrency": loads,
        "output_tokens_per_s": speeds,
        "speedup": [speed / base if speed is not None and base else None for speed in speeds],
        "speedup_base": loads[0],
        "peak_gpu_memory_bytes": [_memory(points[load], "gpu") for load in loads],
        "peak_process_memory_bytes": [_memory(points[load], "server") for load in loads],
        "running": [_median(points[load], "server", "running", "mean") for load in loads],
        "waiting": waiting,
        "in_flight_before_queueing": max(free, default=None) if None not in waiting else None,
    }


def _memory(cells: list[Json], part: str) -> float | None:
    """The engine's own on the GPU where it can be told from others'."""
    if part == "server":
        return _median(cells, "server", "rss_bytes", "max")
    own = _median(cells, "gpu", "engine_memory_bytes", "max")
    return own if own is not None else _median(cells, "gpu", "memory_used_bytes", "max")


def _median(cells: list[Json], *path: str) -> float | None:
    values = [value for cell in cells if (value := _at(cell, path)) is not None]
    return median(values) if values else None


def _at(value: Any, path: tuple[str, ...]) -> float | None:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None
