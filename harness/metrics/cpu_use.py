"""CPU use in the measured window: of the engine, of the load generator, of everything else."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from harness.metrics import series
from harness.metrics.window import Window
from harness.model import (
    BusiestProcess,
    HistogramIncrease,
    Host,
    LoadNode,
    LoadNodeUse,
    SampledSource,
    Server,
    known,
)
from harness.records.series import Telemetry, node_series

_HOST_RATES = ("disk_read", "disk_written", "net_received", "net_sent")
_ENGINE_GAUGES = ("running", "waiting", "kv_use", "cache_hit_rate")


def host(telemetry: Telemetry, sources: Mapping[str, SampledSource], window: Window) -> Host | None:
    """The `host` object; None where nothing was sampled. CPU in cores: 1.0 is one core kept busy."""
    busy = series.rate(telemetry.get("host.cpu_busy_s"), window)
    if busy is None:
        return None
    own = [cores(telemetry, name, window) for name in ("server", "client", "sampler", "partner")]
    return Host(
        cpus=sources["system"].about.get("cpus") if "system" in sources else None,
        busy_cores=busy,
        server_cores=own[0],
        client_cores=own[1],
        # Time that a hypervisor took is among the others'. Nobody's where the engine's own is not known.
        other_cores=None if None in own[:2] else max(0.0, busy - sum(filter(None, own))),
        stolen_cores=series.rate(telemetry.get("host.cpu_stolen_s"), window),
        memory_used_bytes=series.describe(telemetry.get("host.memory_used_bytes"), window),
        **{
            f"{name}_bytes_per_s": series.rate(telemetry.get(f"host.{name}_bytes"), window)
            for name in _HOST_RATES
        },
    )


def load_nodes(telemetry: Telemetry, nodes: Sequence[LoadNode], window: Window) -> tuple[LoadNodeUse, ...]:
    """CPU use of each node, by the samples that it took of itself."""
    return tuple(_load_node(telemetry.of(node_series(node.address)), node, window) for node in nodes)


def _load_node(own: Telemetry, node: LoadNode, window: Window) -> LoadNodeUse:
    def rate(name: str) -> float | None:
        return series.rate(own.get(name), window)

    return LoadNodeUse(
        name=node.name,
        address=node.address,
        cpus=node.cpus,
        busy_cores=rate("host.cpu_busy_s"),
        client_cores=cores(own, "client", window),
        stolen_cores=rate("host.cpu_stolen_s"),
        memory_used_bytes=series.describe(own.get("host.memory_used_bytes"), window),
        net_received_bytes_per_s=rate("host.net_received_bytes"),
        net_sent_bytes_per_s=rate("host.net_sent_bytes"),
    )


def cores(telemetry: Telemetry, name: str, window: Window) -> float | None:
    return series.rate(telemetry.get(f"{name}.cpu_s"), window)


def server(
    telemetry: Telemetry,
    sources: Mapping[str, SampledSource],
    window: Window,
    counted: Server,
    shapes: Mapping[str, HistogramIncrease],
) -> Server:
    """The engine's counters, the CPU and memory of its processes, and its own gauges."""
    names = sources["processes"].about.get("engine_processes", {}) if "processes" in sources else {}
    single = {
        pid: used
        for pid, samples in telemetry.matching("server.process", "cpu_s")
        if (used := series.rate(samples, window)) is not None
    }
    busiest = max(single, key=single.__getitem__, default=None)
    return replace(
        counted,
        cpu_cores=cores(telemetry, "server", window),
        busiest_process=None
        if busiest is None
        else BusiestProcess(pid=int(busiest), name=names.get(busiest), cores=single[busiest]),
        rss_bytes=series.describe(telemetry.get("server.rss_bytes"), window),
        threads=series.describe(telemetry.get("server.threads"), window),
        read_bytes_per_s=series.rate(telemetry.get("server.read_bytes"), window),
        written_bytes_per_s=series.rate(telemetry.get("server.written_bytes"), window),
        **{name: series.describe(telemetry.get(f"engine.{name}"), window) for name in _ENGINE_GAUGES},
        acceptance_rate=_acceptance(counted),
        histograms=_histograms(shapes),
    )


def _acceptance(counted: Server) -> float | None:
    """Accepted over drafted tokens; None without speculation, and where one of them was not counted."""
    drafts, kept = known(counted.draft_tokens), known(counted.accepted_tokens)
    return kept / drafts if drafts and kept is not None else None


def _histograms(increases: Mapping[str, HistogramIncrease]) -> dict[str, dict[str, float | None]]:
    """Quantiles of the engine's own histograms over the cell, ms; linear inside a bucket."""
    return {
        f"{name}_ms": {
            "count": increase.count,
            "mean": 1e3 * increase.sum / increase.count,
            **{f"p{percent}": _quantile(increase.buckets, percent / 100) for percent in (50, 90, 99)},
        }
        for name, increase in increases.items()
        if increase.count > 0
    }


def _quantile(buckets: Sequence[tuple[float | None, float | None]], share: float) -> float | None:
    """None beyond the last finite bound, and in the first bucket: vLLM's of its queue ends at 300 ms, which
    says nothing of waits of a few microseconds.
    """
    below, wanted = (0.0, 0.0), share * (buckets[-1][1] or 0.0) if buckets else 0.0
    for bound, count in buckets:
        if bound is None or count is None:
            return None
        if count >= wanted and count > below[1]:
            if not below[0]:
                return None
            part = (wanted - below[1]) / (count - below[1])
            return 1e3 * (below[0] + part * (bound - below[0]))
        below = (bound, count)
    return None
