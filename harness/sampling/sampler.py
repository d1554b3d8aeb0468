"""The sampler's process: one thread per source, so that a slow one holds up no other."""

import contextlib
import gc
import os
import select
import threading
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from harness.host.heartbeat import Heartbeat
from harness.host.helper_process import peak_rss_bytes
from harness.sampling.job import Report, SourceFacts, Watch
from harness.sampling.sources import Source, UnavailableError, UnreadableError
from harness.sampling.sources.amd import AmdGpus
from harness.sampling.sources.engine import EngineExporter, EngineExporters
from harness.sampling.sources.nvml import NvidiaGpus, NvidiaGpusSlowly
from harness.sampling.sources.processes import Processes
from harness.sampling.sources.system import System
from harness.sampling.spill import Spill

READY = "ready"
_BEAT_MS, _BEATS_PER_FLUSH = 100, 5
_RETRY_S = 1.0  # a source that failed is asked this seldom until it answers
_OPEN_S = 10.0  # for all sources together: the cell waits meanwhile
_MOST_REST_S = 1.0  # after a read that hung, too
_HUNG_NS = 5_000_000_000  # a read that lasts longer, as in a driver that hangs, counts as one that failed


def next_beat_s(beat_s: float, pause_s: float, began_s: float, now_s: float) -> float:
    """When to read again after a read from `began_s` to `now_s`. Beats missed are not made up for.

    A source rests for as long as its read took: a slow driver is at most half of its time at work for us.
    """
    return max(beat_s + pause_s, now_s + min(now_s - began_s, _MOST_REST_S))


@dataclass
class Runner:
    """Reads one source on its beat until asked to end."""

    source: Source
    spill: Spill
    ended: threading.Event
    facts: SourceFacts = field(default_factory=SourceFacts)

    def __post_init__(self) -> None:
        self.facts.period_s = self.source.period_s
        self.opened = threading.Event()
        self._reading_since_ns: int | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self.facts.unavailable = "its reader stopped with an error of its own"
        try:
            self.source.open()
            self._read()
            self.facts.unavailable = ""  # before anybody who waits for `opened` reads it
        except UnavailableError as reason:
            self.facts.unavailable = str(reason)
            return
        finally:
            self.opened.set()
        beat = time.monotonic()
        while not self.ended.wait(max(0.0, beat - time.monotonic())):
            began = time.monotonic()
            self._read()
            pause = self.source.period_s if self.facts.failing_since_ns is None else _RETRY_S
            beat = next_beat_s(beat, pause, began, time.monotonic())
        self._read()
        with contextlib.suppress(Exception):  # of a device that was lost: nothing that was read depends on it
            self.source.close()

    def _read(self) -> None:
        facts, began, busy_ns = self.facts, time.monotonic_ns(), time.thread_time_ns()
        self._reading_since_ns = began
        try:
            self.source.read(self.spill.put)
        except Exception as error:  # of whatever kind: the series would end unreported
            facts.failures += 1
            facts.last_failure = str(error) if isinstance(error, UnreadableError) else repr(error)
            facts.failing_since_ns = facts.failing_since_ns or began
        else:
            facts.reads += 1
            facts.failing_since_ns = None
        self._reading_since_ns = None
        facts.longest_read_ms = max(facts.longest_read_ms, (time.monotonic_ns() - began) / 1e6)
        facts.cpu_s += (time.thread_time_ns() - busy_ns) / 1e9

    def report(self) -> SourceFacts:
        """The facts so far. A read that hangs counts as one that failed, in this report alone."""
        facts, began = replace(self.facts), self._reading_since_ns
        if not self.opened.is_set():
            facts.unavailable = "it was not opened in time"
        if began is not None and time.monotonic_ns() - began > _HUNG_NS:
            facts.failures += 1
            facts.last_failure = "a read did not come to its end"
            facts.failing_since_ns = facts.failing_since_ns or began
        facts.missing, facts.about = dict(self.source.missing), dict(self.source.about)
        return facts


def sources(watch: Watch) -> dict[str, Source]:
    """`hz` applies to the GPUs' cheap fields; what costs more is read less often."""
    beat = 1.0 / watch.hz
    processes = Processes(watch, period_s=2.5 * beat)
    found: dict[str, Source] = {
        "system": System(period_s=2.5 * beat, energy=watch.engine_here),
        "processes": processes,
    }
    if len(watch.exporters) == 1:
        found["engine"] = EngineExporter(watch.exporters[0], period_s=5 * beat)
    elif watch.exporters:
        found["engine"] = EngineExporters(watch.exporters, 5 * beat, apart=watch.apart)
    if watch.engine_here:
        found["nvidia"] = NvidiaGpus(watch.engine_env, period_s=beat)
        found["nvidia-slow"] = NvidiaGpusSlowly(watch.engine_env, processes.engine_pids, period_s=10 * beat)
        found["amd"] = AmdGpus(watch.engine_env, processes.engine_pids, period_s=beat)
    return found


def run_watch(watch: Watch, pipe: "Connection[Any, Any]") -> Report:
    """Sends READY once every source was read once, or after ten seconds. Any message, or the end of the
    pipe, means stop.

    A driver takes seconds for each GPU that nobody holds open, where its persistence mode is off.
    """
    spill, ended = Spill(watch.folder), threading.Event()
    runners = {name: Runner(source, spill, ended) for name, source in sources(watch).items()}
    latest = time.monotonic() + _OPEN_S
    for runner in runners.values():
        runner.opened.wait(max(0.0, latest - time.monotonic()))
    gc.collect()
    gc.freeze()
    cpu, began = time.process_time(), time.monotonic()
    spill.put("sampler.cpu_s", 0.0)
    spill.flush()
    pipe.send((READY, {name: runner.report() for name, runner in runners.items()}))
    heart, beats = Heartbeat(_BEAT_MS * 1_000_000), 0
    poller = select.poll()  # `pipe.poll` makes one each time, which costs as much as the beat
    poller.register(pipe.fileno(), select.POLLIN)
    while not poller.poll(_BEAT_MS):
        heart.beat()
        beats += 1
        if beats % _BEATS_PER_FLUSH == 0:
            spill.put("sampler.cpu_s", time.process_time() - cpu)
            spill.flush()
    heart.beat()  # what kept it from hearing that it is to stop
    ended.set()
    for runner in runners.values():
        runner.thread.join(timeout=2)
    spill.close()
    return Report(
        sources={name: runner.report() for name, runner in runners.items()},
        cpu_s=time.process_time() - cpu,
        wall_s=time.monotonic() - began,
        peak_rss_bytes=peak_rss_bytes(),
        stalls=heart.stalls(0),
    )


def step_aside() -> None:
    """Lowers the priority, so that the sampler yields to the load and preempts nothing."""
    os.nice(5)
    if hasattr(os, "SCHED_BATCH"):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
