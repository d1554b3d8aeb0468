"""The sampler seen from the run: started before the window, stopped after it, with a limit on every wait.

Without samples a cell is still a cell: whatever happens to the sampler is a reason, not an error.
"""

import contextlib
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

import msgspec
import numpy as np

from harness.host import scratch
from harness.host.helper_process import spawn
from harness.model import Sampled, SampledSource, Stall
from harness.records.series import Samples, Telemetry
from harness.sampling.job import Report, SourceFacts, Watch
from harness.sampling.spill import NAMES, ROWS

IDLE_S = 3.0  # how long an idle engine is looked at before the load, where energy can be measured
_START_S = 15.0
_STOP_S = 10.0
_ROW = np.dtype([("series", "<u4"), ("at_ns", "<i8"), ("value", "<f8")])  # as spill.py packs it


class Watcher:
    """Watches one cell. `sampled` has the state of each source, and the reason for what is missing.

    Without a `watch` nothing is sampled, which `sampled` says.
    """

    def __init__(self, watch: Watch | None) -> None:
        self._stack = contextlib.ExitStack()
        self._watch = watch
        self._folder = Path()
        problem = "sampling is off: --sample-hz 0" if watch is None else "the sampler did not start"
        self.sampled = Sampled(requested=watch is not None, problem=problem, sources={})
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._watch is None:
            return self
        self._folder = self._stack.enter_context(scratch.folder("samples"))
        self.process, self._pipe = spawn("harness.sampling")
        self._stack.enter_context(self._pipe)
        self._stack.callback(_end, self.process)
        with contextlib.suppress(OSError, EOFError):
            self._pipe.send(replace(self._watch, folder=self._folder))
            if self._pipe.poll(_START_S):
                _ready, sources = self._pipe.recv()
                self.sampled = _sampled(sources, problem="the sampler was killed")
                self._began = time.monotonic()
        return self

    def idle(self) -> None:
        """Returns once enough of the idle engine was sampled; at once if no energy can be measured."""
        if self._watch is None:
            return
        with contextlib.suppress(OSError):
            names = (self._folder / NAMES).read_text(encoding="utf-8").splitlines()
            if any(name.endswith((".energy_j", ".power_w")) for name in names):
                time.sleep(max(0.0, self._began + IDLE_S - time.monotonic()))

    def stop(self, t0_ns: int) -> Telemetry:
        """The samples on the clock of the cell. The sampler's own cost is in `sampled` from here on."""
        if self._watch is None:
            return Telemetry()
        with contextlib.suppress(OSError, EOFError):
            self._pipe.send("stop")
            while self._pipe.poll(_STOP_S):
                report = self._pipe.recv()
                if not isinstance(report, Report):  # it was ready too late to be waited for
                    continue
                own = {name: getattr(report, name) for name in ("cpu_s", "wall_s", "peak_rss_bytes")}
                sampled = _sampled(report.sources, problem=None, t0_ns=t0_ns)
                stalls = tuple(
                    Stall(at_s=(at_ns - t0_ns) / 1e9, lasted_ms=lasted_ns / 1e6)
                    for at_ns, lasted_ns in report.stalls
                )
                self.sampled = msgspec.structs.replace(sampled, sampler=own, stalls=stalls)
                break
        return read_spill(self._folder, t0_ns)

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """One that waits in a driver that hangs ends with that wait alone: it is left."""
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)


def _sampled(sources: Mapping[str, SourceFacts], problem: str | None, t0_ns: int | None = None) -> Sampled:
    """Times of failures are in seconds from the first request."""
    samples = {}
    for name, facts in sources.items():
        fields = asdict(facts)
        since = fields.pop("failing_since_ns")
        failing_since_s = None if since is None or t0_ns is None else (since - t0_ns) / 1e9
        samples[name] = SampledSource(**fields, failing_since_s=failing_since_s)
    return Sampled(requested=True, problem=problem, sources=samples)


def read_spill(folder: Path, t0_ns: int) -> Telemetry:
    """Empty if the sampler never wrote. A torn last row is left out."""
    try:
        names = (folder / NAMES).read_text(encoding="utf-8").splitlines()
        data = (folder / ROWS).read_bytes()
    except FileNotFoundError:
        return Telemetry()
    rows = np.frombuffer(data[: len(data) // _ROW.itemsize * _ROW.itemsize], _ROW)
    rows = rows[np.lexsort((rows["at_ns"], rows["series"]))]
    bounds = np.searchsorted(rows["series"], np.arange(len(names) + 1))
    return Telemetry(
        {
            name: Samples(rows["at_ns"][start:stop] - t0_ns, rows["value"][start:stop].copy())
            for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True)
            if stop > start
        }
    )
