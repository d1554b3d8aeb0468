"""One backend over the load: speed-up, peak memory, and where its queue begins."""

from collections.abc import Iterable, Mapping
from statistics import median

from harness.model import CellResult, Scaling
from harness.model.json_path import number_at

NO_QUEUE = 0.5  # requests waiting on average, below which nobody is said to queue


def scaling(cells: Iterable[CellResult]) -> dict[str, Scaling]:
    """Medians of the repeats by label, over closed-loop cells that are not INVALID. None: not known."""
    by_label: dict[str, dict[float, list[CellResult]]] = {}
    for cell in cells:
        if cell.load.kind == "concurrency" and not cell.invalid:
            by_label.setdefault(cell.label, {}).setdefault(cell.load.value, []).append(cell)
    return {label: _backend(points) for label, points in by_label.items() if len(points) > 1}


def _backend(points: Mapping[float, list[CellResult]]) -> Scaling:
    loads = sorted(points)
    speeds = [_median_at(points[load], "output_tokens_per_s") for load in loads]
    waiting = [_median_at(points[load], "server.waiting.mean") for load in loads]
    base = speeds[0]
    free = [
        load for load, queued in zip(loads, waiting, strict=True) if queued is not None and queued < NO_QUEUE
    ]
    return Scaling(
        concurrency=tuple(loads),
        output_tokens_per_s=tuple(speeds),
        speedup=tuple(speed / base if speed is not None and base else None for speed in speeds),
        speedup_base=loads[0],
        peak_gpu_memory_bytes=tuple(_memory(points[load]) for load in loads),
        peak_process_memory_bytes=tuple(_median_at(points[load], "server.rss_bytes.max") for load in loads),
        running=tuple(_median_at(points[load], "server.running.mean") for load in loads),
        waiting=tuple(waiting),
        in_flight_before_queueing=max(free, default=None) if None not in waiting else None,
    )


def _memory(cells: list[CellResult]) -> float | None:
    """Prefers the engine's own GPU memory, if it can be separated from that of others."""
    own = _median_at(cells, "gpu.engine_memory_bytes.max")
    return own if own is not None else _median_at(cells, "gpu.memory_used_bytes.max")


def _median_at(cells: list[CellResult], path: str) -> float | None:
    """Median of the repeats."""
    values = [value for cell in cells if (value := number_at(cell, path)) is not None]
    return median(values) if values else None
