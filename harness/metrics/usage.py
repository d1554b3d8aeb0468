"""What a cell used and what that cost: the part of a cell that comes from telemetry."""

from collections.abc import Mapping
from typing import NamedTuple

from harness.metrics import cost, energy, gpus, machine
from harness.metrics.limiter import Watched, limiter
from harness.metrics.throughput import Window
from harness.model import (
    UNSET,
    CellFacts,
    Cost,
    Energy,
    Gpu,
    Host,
    Limiter,
    LoadNodeUse,
    Sampled,
    Server,
    SourceHealth,
    TelemetryHealth,
    from_json,
    known,
)
from harness.records.series import Telemetry

_NOTHING_SAMPLED = Sampled(requested=False, problem="measured without sampling", sources={})


class Usage(NamedTuple):
    """Each as a cell has it."""

    gpu: Gpu | None
    server: Server | None
    host: Host | None
    energy: Energy | None
    cost: Cost | None
    limiter: Limiter | None
    cost_per_million_output_tokens: float | None
    joules_per_output_token: float | None
    telemetry: TelemetryHealth
    load_nodes: tuple[LoadNodeUse, ...] = ()


def describe(
    telemetry: Telemetry,
    facts: CellFacts,
    rates: Mapping[str, float | None],
    window: Window | None,
    good_tokens_per_s: float | None = None,
) -> tuple[Usage, dict[str, str]]:
    """The figures and, for each null, why. `server` begins with what the engine counted over the cell.

    `good_tokens_per_s`: output tokens of the requests that kept the SLO.
    """
    watched = facts.telemetry or _NOTHING_SAMPLED
    health, counters = _health(watched), facts.server_counters
    server = None if counters is None else from_json(counters, Server)
    if window is None:
        nothing = Usage(None, server, None, None, None, None, None, None, health)
        return nothing, {
            key: "no answer to count" for key, value in nothing._asdict().items() if value is None
        }
    sources, nulls = watched.sources, {}
    gpu, nulls["gpu"] = gpus.describe(telemetry, sources, window)
    host = machine.host(telemetry, sources, window)
    nulls["host"] = watched.problem or "too few samples in the window"
    if telemetry.series:
        counted, shapes = server or Server(), facts.server_histograms or {}
        server = machine.server(telemetry, sources, window, counted, shapes)
    else:
        nulls["server"] = "the engine has no metrics and its processes could not be watched"
    used, nulls["energy"] = energy.describe(telemetry, gpu.engine_gpus if gpu else (), rates, window)
    price, nulls["cost"] = cost.price(facts.prices, gpu)
    paid = cost.describe(price, rates, good_tokens_per_s) if price else None
    threads = (facts.engine_values or {}).get("threads")
    limited, nulls["limiter"] = limiter(
        Watched(facts.load.point, facts.client, gpu, server, host, float(threads) if threads else None)
    )
    nulls["cost_per_million_output_tokens"] = nulls["cost"] or "the server reports no token counts"
    nulls["joules_per_output_token"] = nulls["energy"] or "the server reports no token counts"
    usage = Usage(
        gpu,
        server,
        host,
        used,
        paid,
        limited,
        paid.per_million_output_tokens if paid else None,
        used.joules_per_output_token if used else None,
        health,
        machine.load_nodes(telemetry, known(facts.nodes) or (), window),
    )
    return usage, {key: reason for key, reason in nulls.items() if getattr(usage, key) is None and reason}


def _health(watched: Sampled) -> TelemetryHealth:
    """How each source fared. What it is, and what it lacks, is in cell.json."""
    sources = {
        name: SourceHealth(
            reads=source.reads,
            unavailable=source.unavailable,
            last_failure=source.last_failure,
            failing_since_s=source.failing_since_s,
            about={key: source.about[key] for key in ("broken", "lost") if key in source.about},
        )
        for name, source in watched.sources.items()
    }
    stalls = known(watched.stalls)
    return TelemetryHealth(
        requested=watched.requested,
        problem=watched.problem,
        sources=sources,
        sampler=watched.sampler,
        longest_stall_ms=UNSET if stalls is None else max((one.lasted_ms for one in stalls), default=0.0),
    )
