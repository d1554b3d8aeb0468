"""`--metrics-port`: the progress of a run in the Prometheus text format.

The parent serves it, which only follows the load: its generators are processes of their own. Each answer is
made from counters that exist, and nothing is sampled for it.
"""

import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.cli.display import page_server
from harness.errors import SetupError
from harness.model import CellResult
from harness.model.grouping import grouped
from harness.untrusted import inert

if TYPE_CHECKING:
    from harness.cli.display.progress import State
    from harness.load.job import Progress

TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Name without the prefix -> what it means. All are gauges: a cell's counts begin again with the next cell.
PREFIX = "bench_"
METRICS = {
    "run_info": "1; its labels name the run",
    "run_elapsed_seconds": "since the command began",
    "run_left_seconds": "estimate, at most where a run ends when all pairs are decided; absent if unknown",
    "cells_left": "cells still to be measured, at most; absent in a capacity search",
    "cells_measured": "by backend, load and verdict",
    "cell_planned_requests": "of the cell that is being measured, warm-up included",
    "cell_sent_requests": "so far",
    "cell_done_requests": "answered or failed so far",
    "cell_failed_requests": "so far",
    "cell_in_flight_requests": "now",
    "cell_elapsed_seconds": "since its first request",
    "cell_recent_ttft_seconds": "median over the last answers, for watching; no result",
    "cell_recent_output_tokens_per_second": "over the last seconds, by events; no result",
    "measured_ttft_p50_seconds": "of the last cell of this backend and load; absent if INVALID",
    "measured_output_tokens_per_second": "of the last cell of this backend and load; absent if INVALID",
}


_Sample = tuple[str, float, Mapping[str, str]]  # name, value, labels


@contextmanager
def serving(address: tuple[str, int] | None, state: "State") -> Iterator[None]:
    """Serves nothing without an `address`. Raises SetupError if it cannot be used."""
    if address is None:
        yield
        return
    try:
        listener = socket.create_server(address, backlog=128)
    except OSError as error:
        raise SetupError(
            f"cannot be listened on: {error.strerror}",
            where=f"--metrics-port {address[0]}:{address[1]}",
            hint="choose another port",
        ) from None
    with page_server.serving(
        listener, "/metrics", TYPE, lambda: exposition(state, time.monotonic()).encode()
    ):
        yield


def exposition(state: "State", now: float) -> str:
    families = grouped((name, (value, labels)) for name, value, labels in samples(state, now))
    return "".join(
        f"{line}\n" for name in METRICS if name in families for line in _lines(name, families[name])
    )


def _lines(name: str, samples: Sequence[tuple[float, Mapping[str, str]]]) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {METRICS[name]}"
    yield f"# TYPE {PREFIX}{name} gauge"
    for value, labels in samples:
        named = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{PREFIX}{name}{f'{{{named}}}' if named else ''} {value!r}"


def _escaped(text: str) -> str:
    return inert(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def samples(state: "State", now: float) -> Iterator[_Sample]:
    yield "run_elapsed_seconds", now - state.began, {}
    run = state.run
    if run is None:
        return
    scripted = any(backend.ref.definition.backend.simulated for backend in run.prepared.backends)
    scripted |= any(backend.launch.mode == "simulate" for backend in run.prepared.backends)
    scripted |= any(cell.simulated for cell in run.cells)
    about = {"run": run.folder.run_id, "scenario": run.prepared.scenario.name}
    yield "run_info", 1, {**about, "simulated": str(scripted).lower()}
    if (left_s := state.left_s(now)) is not None:
        yield "run_left_seconds", left_s, {}
    if state.cells_left is not None:
        yield "cells_left", state.cells_left, {}
    yield from _measured(run.cells)
    if (load := state.load) is not None:
        cell, progress = load
        labels = {"backend": run.prepared.of(cell).label, "load": cell.load.label}
        yield from ((f"cell_{name}", value, labels) for name, value in _of_cell(progress))


def _measured(cells: list[CellResult]) -> Iterator[_Sample]:
    in_time = sorted(cells, key=lambda cell: cell.started_unix_ns)
    by_load = grouped(((cell.label, cell.load.point.label), cell) for cell in in_time)
    for (label, load), here in by_load.items():
        for verdict, count in Counter(cell.validity.verdict for cell in here).items():
            yield "cells_measured", count, {"backend": label, "load": load, "verdict": verdict}
        labels, last = {"backend": label, "load": load}, here[-1]
        if not last.invalid and last.ttft_ms.p50 is not None:
            yield "measured_ttft_p50_seconds", last.ttft_ms.p50 / 1e3, labels
        if not last.invalid and last.output_tokens_per_s is not None:
            yield "measured_output_tokens_per_second", last.output_tokens_per_s, labels


def _of_cell(progress: "Progress") -> Iterator[tuple[str, float]]:
    yield "planned_requests", progress.planned
    yield "sent_requests", progress.sent
    yield "done_requests", progress.done
    yield "failed_requests", progress.failed
    yield "in_flight_requests", progress.in_flight
    yield "elapsed_seconds", progress.elapsed_s
    if progress.recent_ttft_ms is not None:
        yield "recent_ttft_seconds", progress.recent_ttft_ms / 1e3
    if progress.recent_output_tokens_per_s is not None:
        yield "recent_output_tokens_per_second", progress.recent_output_tokens_per_s
