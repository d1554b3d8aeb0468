"""One cell: the cache as declared, the timed window, and the facts that go beside its records."""

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import scratch
from harness.engines.dialect import common_fields, exact_output_possible, unsaid
from harness.engines.prometheus import Histogram
from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.facts import client_facts
from harness.load import run_load
from harness.load.job import LoadResult, ProgressSink
from harness.metrics.prefix import ideal_hit_rate, reusable
from harness.model import LoadPoint
from harness.observe.counting import counted, histogram_increase, settled
from harness.observe.watcher import Watcher
from harness.plan import Cell, start_of, warmup_requests
from harness.prompts.structured import FREE
from harness.prompts.workload import Workload
from harness.run.cache_state import CacheState, bring_about
from harness.run.division import division
from harness.run.job import make_job
from harness.run.observing import COUNTERS, watch_of
from harness.run.prepare import Prepared
from harness.run.workers import choose_workers
from harness.spec.scenario import Load, Scenario
from harness.telemetry import Telemetry

# An engine that no longer answers may take so long to be gone.
DYING_S = 2.0


def engine_version(facts: Mapping[str, Any]) -> str | None:
    """Of the package it runs from and as the running server tells it, where they differ."""
    package, server = facts.get("package_version"), facts["server_version"]
    return f"{package} (server: {server})" if package and server and package != server else package or server


def _start_facts(scenario: Scenario, point: LoadPoint) -> dict[str, Any]:
    """How the slots of a closed loop begin: as it was done, and as the scenario declares it."""
    start = start_of(scenario, point)
    return {"start": start, "start_declared": scenario.load.start if start else None}


def _arrival_facts(load: Load, point: LoadPoint) -> dict[str, Any]:
    """What the arrivals are tested against."""
    drawn = point.kind == "rate"
    return {
        "arrival": load.arrival if drawn else "trace" if point.kind == "trace" else None,
        "burstiness": load.burstiness if drawn and load.arrival == "gamma" else None,
        "profile": [asdict(part) for part in load.profile],
        "over_cap": None if point.kind == "concurrency" else load.over_cap,
        "think_time_s": load.think_time_s,
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
    cache = bring_about(prepared, workload, engine)
    workers = choose_workers(prepared.options.workers, cell.load)
    with (
        scratch.folder("bodies") as room,
        Watcher(watch_of(engine, prepared.options.sample_hz)) as watcher,
    ):
        job = make_job(prepared, cell, workload, engine, room, salt=cache.salt, workers=workers.count)
        before, shapes_before = _counters(engine), _histograms(engine)
        watcher.idle()
        result = run_load(job, progress, stop)
        engine.fresh = False
        after = settled(lambda: _counters(engine), COUNTERS)
        shapes_after = _histograms(engine) if after is not None else {}
        telemetry = watcher.stop(result.t0_monotonic_ns)
    exited = _exited(engine, suspected=before is not None and after is None)
    counters, restarts = counted(before, after, telemetry, COUNTERS)
    facts = {
        **_facts(prepared, cell, workload, engine, result, cache, counters),
        "workers": asdict(workers),
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


def _minimum(load: Load, *, searched: bool) -> dict[str, float]:
    """What the scenario declares to be enough; the probes of a capacity search have sizes of their own."""
    return (
        {"seconds": 0, "answers": 0}
        if searched
        else {"seconds": load.min_seconds, "answers": load.min_answers}
    )


def _request_facts(prepared: Prepared, cell: Cell, workload: Workload) -> dict[str, Any]:
    """The output constraints of every request, in the engine's own fields, and what it has no field for."""
    definition, request = prepared.backends[cell.backend].definition, prepared.scenario.request
    constraints = workload.constraints
    return {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed if request.temperature else None,
        "thinking": request.thinking,
        "exact_output": request.exact_output,
        "fields": common_fields(
            definition, request, int(workload.asked.numbers["max_tokens"][0]), shaped=bool(constraints)
        ),
        "shapes": sorted(constraint.shape for constraint in constraints),
        "tools": workload.tools,
        "unsaid": unsaid(definition, request, constraints, tools=workload.tools),
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
    cache: CacheState,
    counters: dict[str, float] | None,
) -> dict[str, Any]:
    ref = prepared.backends[cell.backend]
    header, load = ref.definition.backend, prepared.scenario.load
    warmup = warmup_requests(prepared.scenario, cell.load)
    track = prepared.tracks[cell.backend]
    asked = _request_facts(prepared, cell, workload)
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
            "division": division(prepared, cell.backend),
            "repeat": cell.repeat,
        },
        "load": {
            "kind": cell.load.kind,
            "value": cell.load.value,
            **_arrival_facts(load, cell.load),
            **_start_facts(prepared.scenario, cell.load),
        },
        "workload": {
            "sha256": workload.sha256,
            "exact_lengths": workload.exact,
            "in_stretches": FREE in workload.asked.kinds,
            "output_tokens": _same(workload.asked.numbers["max_tokens"]),
            "exact_output": asked["exact_output"]
            and exact_output_possible(ref.definition)
            and not asked["shapes"],
            "content_tokens_mean": float(reusable(workload.asked)[1].mean()),
            "ideal_hit_rate": ideal_hit_rate(workload.asked, slice(warmup, None)),
            "shared_share": ideal_hit_rate(workload.asked, slice(warmup, None), warm=True),
            "cold_cache": prepared.scenario.cache.state == "cold",
        },
        "request": asked,
        "prefix_cache": ref.definition.prefix_cache.enabled,
        "habits": asdict(ref.definition.dialect.habits),
        "engine_values": engine.facts.get("values"),
        "start": engine.facts.get("start"),
        "planned": len(workload) - warmup,
        "slo": prepared.scenario.slo,
        "probe": None if (probe := prepared.probe_of(cell)) is None else asdict(probe),
        "minimum": _minimum(load, searched=probe is not None),
        "unsent": result.unsent,
        "interrupted": result.interrupted,
        "cache": cache.as_json(),
        "t0_unix_ns": result.t0_unix_ns,
        "t0_monotonic_ns": result.t0_monotonic_ns,
        "server_counters": counters,
        "engine_log": engine.facts.get("log"),
        "client": client_facts(result.client),
    }
