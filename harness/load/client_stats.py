"""The load generator's own figures, as cell.json keeps them."""

import numpy as np
from numpy.typing import NDArray

from harness.load.job import ClientFacts
from harness.model import ClientStats, Quantiles, Stall


def client_stats(client: ClientFacts) -> ClientStats:
    return ClientStats(
        stamp_source=client.stamp_source,
        stamp_uncertainty_ms=client.stamp_uncertainty_ns / 1e6,
        tick_ms=client.tick_ns / 1e6,
        workers=client.workers,
        lost_workers=client.lost_workers,
        merged_share=client.merged_share,
        held_at_cap=client.held_at_cap,
        cpu_s=client.cpu_s,
        busy_share=client.busy_share,
        wall_s=client.wall_s,
        send_lag_ms=_quantiles_ms(client.send_lag_ns),
        loop_lag_ms=_quantiles_ms(client.loop_lag_ns),
        connections=client.connections,
        connect_ms=_quantiles_ms(client.connect_ns),
        peak_rss_bytes=client.peak_rss_bytes,
        gc_collections=client.gc_collections,
        busy_shares=list(client.busy_shares),
        waits=client.waits,
        preemptions=client.preemptions,
        open_descriptors=client.open_descriptors,
        socket_errors=client.socket_errors,
        clock_step_ms=client.clock_step_ns / 1e6 if client.clock_step_ns is not None else None,
        clamped_stamps=client.clamped_stamps,
        start=client.start,
        spread_over_ms=client.spread_over_ns / 1e6 if client.spread_over_ns is not None else None,
        stalls=tuple(
            Stall(worker=worker, at_s=at_ns / 1e9, lasted_ms=lasted_ns / 1e6)
            for worker, at_ns, lasted_ns in client.stalls
        ),
        suspended_ms=client.suspended_ns / 1e6 if client.suspended_ns is not None else None,
        notes=list(client.notes),
    )


def _quantiles_ms(values_ns: NDArray[np.int64]) -> Quantiles:
    if not len(values_ns):
        return Quantiles(samples=0, p50=None, p90=None, p95=None, p99=None, max=None)
    p50, p90, p95, p99, most = (np.quantile(values_ns, (0.5, 0.9, 0.95, 0.99, 1)) / 1e6).tolist()
    return Quantiles(samples=len(values_ns), p50=p50, p90=p90, p95=p95, p99=p99, max=most)
