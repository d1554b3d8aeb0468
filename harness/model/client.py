"""Figures of the load generator itself, as cell.json and summary.json keep them."""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from harness.model.record import UNSET, Record, UnsetType, doc, known

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Quantiles(Record, frozen=True, kw_only=True):
    """Quantiles of a lag, in ms; null without samples."""

    samples: Annotated[int, doc("Number of samples.")]
    p50: Annotated[float | None, doc("Median, ms; null: no samples.")]
    p90: Annotated[float | None, doc("90th percentile, ms; null: no samples.")]
    p95: Annotated[float | None, doc("95th percentile, ms; null: no samples.")]
    p99: Annotated[float | None, doc("99th percentile, ms; null: no samples.")]
    max: Annotated[float | None, doc("Largest sample, ms; null: no samples.")]

    @classmethod
    def of_ns(cls, values_ns: "NDArray[np.int64]") -> Self:
        import numpy as np

        if not len(values_ns):
            return cls(samples=0, p50=None, p90=None, p95=None, p99=None, max=None)
        p50, p90, p95, p99, most = (np.quantile(values_ns, (0.5, 0.9, 0.95, 0.99, 1)) / 1e6).tolist()
        return cls(samples=len(values_ns), p50=p50, p90=p90, p95=p95, p99=p99, max=most)


class Stall(Record, frozen=True, kw_only=True):
    """A time in which a process did not run, though it should wake up at least ten times a second."""

    worker: Annotated[
        int | UnsetType, doc("Number of the load process, as in the requests; missing: the sampler.")
    ] = UNSET
    at_s: Annotated[float, doc("Latest possible beginning of the stall, s from the start of the cell.")]
    lasted_ms: Annotated[float, doc("Least duration of the stall, ms.")]


class ClientStats(Record, frozen=True, kw_only=True):
    """CPU time, lags, stamps and connections of the load generator over one cell."""

    stamp_source: Annotated[
        str, doc("Clock of the arrival stamps: kernel (when received) or user (when read).")
    ]
    stamp_uncertainty_ms: Annotated[
        float | None, doc("Uncertainty of an arrival's stamp, ms; null: not known.")
    ]
    tick_ms: Annotated[
        float | None, doc("Longest planned sleep between two looks at the sockets, ms; null: not known.")
    ]
    workers: Annotated[int, doc("Number of load processes.")]
    lost_workers: Annotated[int, doc("Load processes that ended before the cell did.")]
    merged_share: Annotated[
        float | None,
        doc("Share of text events that one read brought with the event before, 0 to 1; null: not known."),
    ]
    held_at_cap: Annotated[
        int, doc("Requests of an open loop that waited because the in-flight cap was reached.")
    ]
    cpu_s: Annotated[float | None, doc("CPU time of all load processes under load, s; null: not known.")]
    busy_share: Annotated[
        float | None, doc("Share of one core that the busiest load process used; null: not known.")
    ]
    wall_s: Annotated[
        float | None,
        doc("Time from the start of the cell to the end of its last request, s; null: not known."),
    ]
    send_lag_ms: Annotated[
        Quantiles,
        doc("Lag of sends behind their intended time, ms, without connecting or waiting for the cap."),
    ]
    loop_lag_ms: Annotated[
        Quantiles, doc("Lag of the event loop behind the time at which it was to wake, ms.")
    ]
    connections: Annotated[int, doc("Connections that were opened.")]
    connect_ms: Annotated[Quantiles, doc("Time to open a connection, ms.")]
    peak_rss_bytes: Annotated[int, doc("Peak resident memory of the load process that had most, bytes.")]
    gc_collections: Annotated[int, doc("Garbage collections in all load processes under load.")]
    busy_shares: Annotated[
        list[float | None] | UnsetType,
        doc("Share of one core that each load process used; missing: not recorded."),
    ] = UNSET
    waits: Annotated[
        int | UnsetType, doc("Voluntary context switches of all load processes; missing: not recorded.")
    ] = UNSET
    preemptions: Annotated[
        int | UnsetType, doc("Involuntary context switches of all load processes; missing: not recorded.")
    ] = UNSET
    open_descriptors: Annotated[
        int | UnsetType | None,
        doc("Open file descriptors of all load processes at the end; null: not known."),
    ] = UNSET
    socket_errors: Annotated[
        int | UnsetType,
        doc("Requests whose connection was refused, reset or closed mid-answer; missing: not recorded."),
    ] = UNSET
    clock_step_ms: Annotated[
        float | UnsetType | None,
        doc("Largest step of the real-time clock beyond slewing, ms; null: stamps do not use it."),
    ] = UNSET
    clamped_stamps: Annotated[
        int | UnsetType,
        doc("Reads whose kernel stamp was before the bytes could be read, or after they were."),
    ] = UNSET
    late_share: Annotated[
        float | UnsetType | None,
        doc("Share of text events that came in one read because the client looked late; null: not known."),
    ] = UNSET
    start: Annotated[
        Literal["together", "spread"] | UnsetType | None,
        doc("Start of a closed loop's slots: together, or spread over an answer time; null: open loop."),
    ] = UNSET
    spread_over_ms: Annotated[
        float | UnsetType | None,
        doc("Time from the start of the cell until its slots had spread, ms; null: not spread."),
    ] = UNSET
    stalls: Annotated[
        tuple[Stall, ...] | UnsetType,
        doc("Times of 100 ms and more for which a load process did not run; missing: not recorded."),
    ] = UNSET
    suspended_ms: Annotated[
        float | UnsetType | None,
        doc("Time for which the machine was suspended under load, ms; null: the system does not count it."),
    ] = UNSET
    notes: Annotated[list[str], doc("Notes about the load generator, in words.")]

    @property
    def spread_over_ns(self) -> int:
        """Time from t0 until the slots of a closed loop had spread their sends; 0 if they did not."""
        return round((known(self.spread_over_ms) or 0) * 1e6)
