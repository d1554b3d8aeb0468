"""What a cell used and what that cost: the part of a cell that comes from telemetry."""

from collections.abc import Mapping

from harness.metrics import cost, cpu_use, energy, gpus, pace, throughput
from harness.metrics.goodput import goodput_of
from harness.metrics.limiter import Watched, limiter
from harness.metrics.reason import NO_ANSWER, NOT_COUNTED
from harness.metrics.view import CellView, Figures
from harness.metrics.window import Window
from harness.model import (
    UNSET,
    CellFacts,
    Sampled,
    SampledSource,
    Server,
    SourceHealth,
    State,
    TelemetryHealth,
    from_json,
    known,
)
from harness.records.series import Telemetry

_OF_WINDOW = (
    "gpu server host energy cost limiter cost_per_million_output_tokens cost_per_thousand_requests "
    "joules_per_output_token".split()
)
_KEPT = ("broken", "lost", "named")  # of what a source says of itself
_LEAST_DUE = 20  # reads, before a rate is judged
_SLOW_SHARE = 0.5  # of the reads that its period allows
_NOTHING_SAMPLED = Sampled(requested=False, problem="measured without sampling", sources={})


def compute(cell: CellView) -> Figures:
    good = cell.of(goodput_of).output_tokens_per_s
    rates, why = cell.of(throughput.rates_of), cell.of(throughput.compute).nulls
    no_rate = why.get("output_tokens_per_s", "the server counts no output token in the window")
    state = cell.of(pace.compute).state
    return describe(cell.telemetry, cell.facts, rates, cell.window, good, no_rate, state)


def describe(
    telemetry: Telemetry,
    facts: CellFacts,
    rates: Mapping[str, float | None],
    window: Window | None,
    good_tokens_per_s: float | None = None,
    no_rate: str = NOT_COUNTED,
    state: State | None = None,
) -> Figures:
    """Engine and machine over the window of a cell; None: not sampled, or does not apply.

    `server` begins with what the engine counted over the cell.

    `good_tokens_per_s`: output tokens of the requests that kept the SLO. `no_rate`: why there is no rate
    of output tokens, or none above 0.
    """
    watched = facts.telemetry or _NOTHING_SAMPLED
    health, counters = _health(watched), facts.server_counters
    server = None if counters is None else from_json(counters, Server)
    if window is None:
        nothing = dict.fromkeys(_OF_WINDOW) | {"server": server}
        unknown = [key for key, value in nothing.items() if value is None]
        return Figures(dict.fromkeys(unknown, NO_ANSWER), telemetry=health, load_nodes=(), **nothing)
    sources = watched.sources
    nulls: dict[str, str | None] = {}
    gpu, nulls["gpu"] = gpus.describe(telemetry, sources, window)
    host = cpu_use.host(telemetry, sources, window)
    nulls["host"] = watched.problem or "too few samples in the window"
    if telemetry.series:
        counted, shapes = server or Server(), facts.server_histograms or {}
        server = cpu_use.server(telemetry, sources, window, counted, shapes)
    else:
        nulls["server"] = "the engine has no metrics and its processes could not be watched"
    # GPUs that could not be read are no CPU machine: its packages are not what the engine draws from.
    unread = gpu is None and any(source.about.get("broken") for source in sources.values())
    used, nulls["energy"] = (
        (None, nulls["gpu"])
        if unread
        else energy.describe(telemetry, gpu.engine_gpus if gpu else (), rates, window)
    )
    price, nulls["cost"] = cost.price(facts.prices, gpu, facts.identity.label)
    paid = cost.describe(price, rates, good_tokens_per_s) if price else None
    threads = (facts.engine_values or {}).get("threads")
    quotas = sources["processes"].about.get("cpu_quotas", {}) if "processes" in sources else {}
    limited, nulls["limiter"] = limiter(
        Watched(
            load=facts.load.point,
            client=facts.client,
            gpu=gpu,
            gpus_unread=unread,
            server=server,
            host=host,
            threads=float(threads) if threads else None,
            state=state,
            quotas=quotas,
        )
    )
    nulls["cost_per_million_output_tokens"] = nulls["cost"] or no_rate
    nulls["cost_per_thousand_requests"] = nulls["cost"] or NO_ANSWER
    nulls["joules_per_output_token"] = nulls["energy"] or no_rate
    found = {
        "telemetry": health,
        "gpu": gpu,
        "server": server,
        "host": host,
        "energy": used,
        "cost": paid,
        "limiter": limited,
        "cost_per_million_output_tokens": paid.per_million_output_tokens if paid else None,
        "cost_per_thousand_requests": cost.per_thousand(price, rates.get("requests_per_s")),
        "joules_per_output_token": used.joules_per_output_token if used else None,
        "load_nodes": cpu_use.load_nodes(telemetry, known(facts.nodes) or (), window),
    }
    return Figures({key: why for key, why in nulls.items() if why and found[key] is None}, **found)


def _fails_often(source: SampledSource) -> bool:
    """Whether several and more than a tenth of its reads failed; after each, the next is a second later."""
    return source.failures > 2 and source.failures * 9 > source.reads


def _read_hz(source: SampledSource, watched: Sampled) -> dict[str, float]:
    """The rate at which a source was read, where its answers took so long that more than half of the reads
    did not take place in time. One that took long to open, or got no CPU, answers at once.
    """
    wall_s = (known(watched.sampler) or {}).get("wall_s", 0.0)
    due = wall_s / source.period_s if source.period_s else 0.0
    late = due > _LEAST_DUE and source.reads and not source.failures and source.reads < _SLOW_SHARE * due
    slow = late and source.longest_read_ms / 1e3 > source.period_s
    return {"read_hz": source.reads / wall_s} if slow else {}


def _health(watched: Sampled) -> TelemetryHealth:
    """How many samples of each source came or failed. Its description is in cell.json."""
    sources = {
        name: SourceHealth(
            reads=source.reads,
            unavailable=source.unavailable,
            last_failure=source.last_failure,
            failing_since_s=source.failing_since_s,
            failures=source.failures if _fails_often(source) else UNSET,
            about={key: source.about[key] for key in _KEPT if key in source.about}
            | _read_hz(source, watched),
        )
        for name, source in watched.sources.items()
    }
    stalls = known(watched.stalls)
    return TelemetryHealth(
        requested=watched.requested,
        problem=watched.problem,
        sources=sources,
        sampler=watched.sampler,
        longest_stall_ms=UNSET if stalls is None else max((stall.lasted_ms for stall in stalls), default=0.0),
    )
