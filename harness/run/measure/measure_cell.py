"""Measures one cell: prepares the cache, runs the timed window, and collects the facts for cell.json."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.cluster.placement import Cluster
from harness.engines.session import EngineSession
from harness.host import scratch
from harness.load import run_load
from harness.load.job import LoadResult, ProgressSink
from harness.model import UNSET, CellFacts, known
from harness.plan import Cell
from harness.records.series import Telemetry
from harness.run.measure.cache_state import Attempt, bring_about
from harness.run.measure.cell_facts import answered_models, facts_of
from harness.run.measure.echoes import echoed
from harness.run.measure.engine_counters import EngineCounters
from harness.run.measure.job import make_job
from harness.run.measure.silence import silence_of
from harness.run.measure.watch import watch_of
from harness.run.measure.workers import choose_workers
from harness.run.setup.prepare import Prepared
from harness.sampling.watcher import Watcher
from harness.workload.prompts.workload import Workload


@dataclass(frozen=True, slots=True)
class Measured:
    result: LoadResult
    facts: CellFacts
    telemetry: Telemetry


class CellMeasurement(NamedTuple):
    """Means to follow and to stop the timed part of a cell, and where its load comes from."""

    progress: ProgressSink
    say: Callable[[str], None]  # of what is waited for before the load and once it is over
    stop: threading.Event
    cluster: Cluster | None  # None: this machine
    attempt: Attempt
    meeting: threading.Barrier | None = None  # waited for by cells whose loads begin together
    up: Sequence[EngineSession] = ()  # every engine that is, this cell's among them
    chat_tokens: int | None = None  # of the longer chat that the backend was probed with; None: not known


def measure(
    prepared: Prepared, cell: Cell, workload: Workload, engine: EngineSession, window: CellMeasurement
) -> Measured:
    """Measures a cell. Nothing but the load and the sampler runs inside the window.

    Raises SetupError, and KeyboardInterrupt for one that is stopped before its first request.
    """
    after_start = prepared.scenario.begins_cold and engine.fresh
    cache = bring_about(prepared, cell, workload, engine, window.attempt, window.stop)
    workers = choose_workers(prepared.options.all_workers, cell.load)
    with (
        scratch.folder("bodies") as folder,
        Watcher(
            watch_of(engine, prepared.options.sample_hz, window.up, duet=window.meeting is not None)
        ) as watcher,
    ):
        job = make_job(prepared, cell, workload, engine, folder, salt=cache.salt)
        job = replace(job, workers=workers.count)
        counters = EngineCounters(engine, window.say)
        watcher.idle()
        worker_pool = window.cluster.worker_pool(job, prepared.options.sample_hz) if window.cluster else None
        if window.meeting is not None:
            with suppress(threading.BrokenBarrierError):  # the other could not begin
                window.meeting.wait()
        result = run_load(job, window.progress, window.stop, worker_pool)
        engine.fresh = False
        counters.read_again()
        telemetry = watcher.stop(result.t0_monotonic_ns)
        if worker_pool is not None:
            telemetry = Telemetry({**telemetry.series, **worker_pool.telemetry().series})
    ending = engine.liveness.after_load(
        silence_of(result, prepared.scenario.request.timeout_s, deaf=counters.fell_silent),
        window.stop,
        window.say,
        suspected=counters.fell_silent or bool(known(result.client.socket_errors)),
    )
    facts = facts_of(
        prepared,
        cell,
        workload,
        engine,
        unsent=result.unsent,
        interrupted=result.interrupted,
        after_start=after_start,
        cache=cache.preparation,
        t0_unix_ns=result.t0_unix_ns,
        t0_monotonic_ns=result.t0_monotonic_ns,
        client=result.client,
        answered_models=answered_models(result, prepared, workload, engine.facts.get("served_name")),
        most_prompt_tokens=workload.most_tokens(window.chat_tokens),
        echoed=echoed(result.records, workload.requests),
        workers=workers,
        nodes=worker_pool.nodes() if worker_pool else UNSET,
        **counters.over_load(telemetry, result.t0_monotonic_ns)._asdict(),
        telemetry=watcher.sampled,
        engine_exited=ending.why if ending else None,
        engine_end=ending.kind if ending else None,
    )
    return Measured(result, facts, telemetry)
