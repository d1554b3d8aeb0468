"""One cell: cold cache, the timed window, and the facts that go beside its records."""

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.engines.dialect import common_fields, exact_output_possible, render_body, unsaid
from harness.engines.prometheus import Histogram
from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.facts import client_facts
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, LoadResult, OpenLoop, ProgressSink
from harness.metrics.prefix import ideal_hit_rate, reusable
from harness.observe.counting import counted, histogram_increase, settled
from harness.observe.watcher import Watcher
from harness.plan import Cell, LoadPoint, seed_for
from harness.prompts.request import ChatRequest
from harness.prompts.workload import Workload
from harness.run.observing import COUNTERS, watch_of
from harness.run.prepare import Prepared
from harness.schedule import arrivals, think_times
from harness.spec.scenario import Load
from harness.telemetry import Telemetry

# An engine that no longer answers may take so long to be gone.
DYING_S = 2.0


def engine_version(facts: Mapping[str, Any]) -> str | None:
    """Of the package it runs from and as the running server tells it, where they differ."""
    package, server = facts.get("package_version"), facts["server_version"]
    return f"{package} (server: {server})" if package and server and package != server else package or server


def make_job(prepared: Prepared, cell: Cell, workload: Workload, engine: EngineSession) -> LoadJob:
    load, request = prepared.scenario.load, prepared.scenario.request
    definition = prepared.backends[cell.backend].definition
    bodies = [
        render_body(definition, engine.served_name, _as_json(made), made.max_tokens, request)
        for made in workload.requests
    ]
    return LoadJob(
        url=engine.chat_url,
        headers=engine.headers(),
        bodies=bodies,
        schedule=_schedule(prepared, cell.load, cell.repeat, len(bodies)),
        warmup_requests=load.warmup_requests,
        duration_s=load.duration_s,
        request_timeout_s=request.timeout_s,
        drain_timeout_s=request.timeout_s,
        workers=prepared.options.workers,
    )


def _as_json(request: ChatRequest) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in request.messages]


def _schedule(prepared: Prepared, point: LoadPoint, repeat: int, count: int) -> ClosedLoop | OpenLoop:
    load, run_seed = prepared.scenario.load, prepared.options.seed
    if point.kind == "concurrency":
        seed = seed_for(run_seed, "think", point.label, repeat)
        waits = think_times(load.think_time_s, load.think_time == "exponential", count, seed)
        return ClosedLoop(int(point.value), waits if load.think_time_s else None)
    intended_ns = arrivals(
        load.arrival,
        point.value,
        count,
        seed_for(run_seed, "arrivals", point.label, repeat),
        burstiness=load.burstiness,
        profile=load.profile,
        repeat_profile=load.repeat_profile,
    )
    return OpenLoop(intended_ns, load.max_in_flight, load.over_cap)


def _arrival_facts(load: Load, point: LoadPoint) -> dict[str, Any]:
    """What the arrivals are tested against."""
    drawn = point.kind == "rate"
    return {
        "arrival": load.arrival if drawn else None,
        "burstiness": load.burstiness if drawn and load.arrival == "gamma" else None,
        "profile": [asdict(part) for part in load.profile],
        "over_cap": None if point.kind == "concurrency" else load.over_cap,
    }


@dataclass(frozen=True, slots=True)
class Measured:
    result: LoadResult
    facts: dict[str, Any]  # the content of cell.json
    telemetry: Telemetry


def measure(
    prepared: Prepared,
    cell: Cell,
    workload: Workload,
    engine: EngineSession,
    progress: ProgressSink,
    stop: threading.Event,
) -> Measured:
    """Nothing but the load and the sampler runs inside the window."""
    cache = _make_cold(prepared, engine)
    with Watcher(watch_of(engine, prepared.options.sample_hz)) as watcher:
        job = make_job(prepared, cell, workload, engine)
        before, shapes_before = _counters(engine), _histograms(engine)
        watcher.idle()
        result = run_load(job, progress, stop)
        after, shapes_after = settled(lambda: _counters(engine), COUNTERS), _histograms(engine)
        telemetry = watcher.stop(result.t0_monotonic_ns)
    exited = _exited(engine, suspected=before is not None and after is None)
    counters, restarts = counted(before, after, telemetry, COUNTERS)
    facts = {
        **_facts(prepared, cell, workload, engine, result, cache, counters),
        "counter_restarts": restarts,
        "server_histograms": histogram_increase(shapes_before, shapes_after),
        "telemetry": watcher.facts,
        "prices": prepared.options.prices,
        "engine_exited": exited,
    }
    return Measured(result, facts, telemetry)


def _counters(engine: EngineSession) -> dict[str, float] | None:
    """None where the engine has none or does not answer: a measured cell is not lost for its counters."""
    try:
        return engine.counters()
    except SetupError:
        return None


def _histograms(engine: EngineSession) -> dict[str, Histogram]:
    try:
        return engine.histograms()
    except SetupError:
        return {}


def _exited(engine: EngineSession, *, suspected: bool) -> str | None:
    """How our process ended, if it did; one that stopped answering is given a moment to be seen dead."""
    deadline = time.monotonic() + (DYING_S if suspected else 0)
    while (ended := engine.exited()) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return ended


def _make_cold(prepared: Prepared, engine: EngineSession) -> dict[str, Any]:
    """Prompts are new to the engine anyway; the reset also empties what memory earlier cells still hold."""
    wanted = prepared.scenario.cache.state
    if wanted != "cold":
        return {"wanted": wanted, "reset": False, "how": "not asked for"}
    done = engine.reset_prefix_cache()
    return {"wanted": wanted, "reset": done.done, "how": done.how}


def _request_facts(prepared: Prepared, cell: Cell, workload: Workload) -> dict[str, Any]:
    """What was asked of every answer, in the engine's own fields, and what it has no field for."""
    definition, request = prepared.backends[cell.backend].definition, prepared.scenario.request
    return {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed if request.temperature else None,
        "thinking": request.thinking,
        "exact_output": request.exact_output,
        "fields": common_fields(definition, request, int(workload.asked.numbers["max_tokens"][0])),
        "unsaid": unsaid(definition, request),
    }


def _same(values: NDArray[np.int64]) -> int | None:
    """None where they differ."""
    return int(values[0]) if (values == values[0]).all() else None


def _facts(
    prepared: Prepared,
    cell: Cell,
    workload: Workload,
    engine: EngineSession,
    result: LoadResult,
    cache: Mapping[str, Any],
    counters: dict[str, float] | None,
) -> dict[str, Any]:
    ref = prepared.backends[cell.backend]
    header, load = ref.definition.backend, prepared.scenario.load
    track = prepared.tracks[cell.backend]
    return {
        "identity": {
            "cell": cell.name,
            "backend": ref.definition.name,
            "variant": ref.variant,
            "label": prepared.labels[cell.backend],
            "title": header.title,
            "simulated": bool(engine.facts["simulated"]),
            "track": track,
            "quantisation": prepared.model.tracks[track].quantisation if track else None,
            "engine_version": engine_version(engine.facts),
            "launch": prepared.launches[cell.backend].mode,
            "repeat": cell.repeat,
        },
        "load": {
            "kind": cell.load.kind,
            "value": cell.load.value,
            **_arrival_facts(load, cell.load),
        },
        "workload": {
            "sha256": workload.sha256,
            "exact_lengths": workload.exact,
            "output_tokens": _same(workload.asked.numbers["max_tokens"]),
            "exact_output": prepared.scenario.request.exact_output and exact_output_possible(ref.definition),
            "content_tokens_mean": float(reusable(workload.asked)[1].mean()),
            "ideal_hit_rate": ideal_hit_rate(workload.asked, load.warmup_requests),
            "shared_share": ideal_hit_rate(workload.asked, load.warmup_requests, warm=True),
            "cold_cache": prepared.scenario.cache.state == "cold",
        },
        "request": _request_facts(prepared, cell, workload),
        "prefix_cache": ref.definition.prefix_cache.enabled,
        "engine_values": engine.facts.get("values"),
        "planned": load.requests,
        "unsent": result.unsent,
        "interrupted": result.interrupted,
        "cache": dict(cache),
        "t0_unix_ns": result.t0_unix_ns,
        "t0_monotonic_ns": result.t0_monotonic_ns,
        "server_counters": counters,
        "engine_log": engine.facts.get("log"),
        "client": client_facts(result.client),
    }
