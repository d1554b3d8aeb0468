"""How the load generator fared, as cell.json keeps it: what validity is judged from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.load.job import ClientFacts


def client_facts(client: ClientFacts) -> dict[str, Any]:
    return {
        "stamp_source": client.stamp_source,
        "stamp_uncertainty_ms": client.stamp_uncertainty_ns / 1e6,
        "tick_ms": client.tick_ns / 1e6,
        "workers": client.workers,
        "lost_workers": client.lost_workers,
        "merged_share": client.merged_share,
        "held_at_cap": client.held_at_cap,
        "cpu_s": client.cpu_s,
        "busy_share": client.busy_share,
        "wall_s": client.wall_s,
        "send_lag_ms": _quantiles_ms(client.send_lag_ns),
        "loop_lag_ms": _quantiles_ms(client.loop_lag_ns),
        "connections": client.connections,
        "connect_ms": _quantiles_ms(client.connect_ns),
        "peak_rss_bytes": client.peak_rss_bytes,
        "gc_collections": client.gc_collections,
        "busy_shares": list(client.busy_shares),
        "waits": client.waits,
        "preemptions": client.preemptions,
        "open_descriptors": client.open_descriptors,
        "socket_errors": client.socket_errors,
        "clock_step_ms": client.clock_step_ns / 1e6 if client.clock_step_ns is not None else None,
        "clamped_stamps": client.clamped_stamps,
        "start": client.start,
        "spread_over_ms": client.spread_over_ns / 1e6 if client.spread_over_ns is not None else None,
        "notes": list(client.notes),
    }


def _quantiles_ms(values_ns: NDArray[np.int64]) -> dict[str, float | int | None]:
    names = ("p50", "p90", "p95", "p99", "max")
    if not len(values_ns):
        return {"samples": 0, **dict.fromkeys(names)}
    quantiles = np.quantile(values_ns, (0.5, 0.9, 0.95, 0.99, 1)) / 1e6
    return {"samples": len(values_ns), **{n: float(q) for n, q in zip(names, quantiles, strict=True)}}
