"""Figures of the load generator itself, as cell.json and summary.json keep them."""

from typing import Annotated, Literal

from harness.model.record import UNSET, Record, UnsetType, doc, known


class Quantiles(Record, frozen=True, kw_only=True):
    """Quantiles of a lag, in ms; null without samples."""

    samples: Annotated[int, doc("How many.")]
    p50: Annotated[float | None, doc("Median, ms.")]
    p90: Annotated[float | None, doc("90th percentile, ms.")]
    p95: Annotated[float | None, doc("95th percentile, ms.")]
    p99: Annotated[float | None, doc("99th percentile, ms.")]
    max: Annotated[float | None, doc("Largest, ms.")]


class Stall(Record, frozen=True, kw_only=True):
    """A time in which a process did not run, though it should wake up at least ten times a second."""

    worker: Annotated[
        int | UnsetType, doc("Load process, as the requests name it; missing: the sampler.")
    ] = UNSET
    at_s: Annotated[float, doc("When it began, at the latest; s from t0.")]
    lasted_ms: Annotated[float, doc("At least; ms.")]


class ClientStats(Record, frozen=True, kw_only=True):
    """CPU time, lags, stamps and connections of the load generator over one cell."""

    stamp_source: Annotated[str, doc("Whose clock the arrivals are of: kernel or user.")]
    stamp_uncertainty_ms: Annotated[float | None, doc("Of an arrival's stamp.")]
    tick_ms: Annotated[float | None, doc("Longest sleep between two looks at the sockets.")]
    workers: Annotated[int, doc("Load processes.")]
    lost_workers: Annotated[int, doc("Load processes that ended before the cell did.")]
    merged_share: Annotated[float | None, doc("Text events that shared a read with the one before, 0 to 1.")]
    held_at_cap: Annotated[int, doc("Requests that waited for the in-flight cap.")]
    cpu_s: Annotated[float | None, doc("CPU time of all load processes, s.")]
    busy_share: Annotated[float | None, doc("Of a core, of the busiest worker.")]
    wall_s: Annotated[float | None, doc("Length of the cell, s.")]
    send_lag_ms: Annotated[Quantiles, doc("From the intended send to the actual one.")]
    loop_lag_ms: Annotated[Quantiles, doc("By which the event loop woke late.")]
    connections: Annotated[int, doc("That were opened.")]
    connect_ms: Annotated[Quantiles, doc("Time to open one.")]
    peak_rss_bytes: Annotated[int, doc("Memory of the load processes.")]
    gc_collections: Annotated[int, doc("Runs of the garbage collector.")]
    busy_shares: Annotated[list[float | None] | UnsetType, doc("Of a core, by worker.")] = UNSET
    waits: Annotated[int | UnsetType, doc("Voluntary context switches.")] = UNSET
    preemptions: Annotated[int | UnsetType, doc("Involuntary context switches.")] = UNSET
    open_descriptors: Annotated[int | UnsetType | None, doc("File descriptors at the end.")] = UNSET
    socket_errors: Annotated[int | UnsetType, doc("That the kernel reported.")] = UNSET
    clock_step_ms: Annotated[
        float | UnsetType | None,
        doc(
            "Largest step of the real-time clock inside the window beyond slewing; null: its stamps not used."
        ),
    ] = UNSET
    clamped_stamps: Annotated[
        int | UnsetType,
        doc("Reads whose kernel stamp was before the bytes could be read, or after they were."),
    ] = UNSET
    start: Annotated[
        Literal["together", "spread"] | UnsetType | None, doc("Slots of a closed loop; null: an open loop.")
    ] = UNSET
    spread_over_ms: Annotated[
        float | UnsetType | None, doc("From t0 until the slots had spread their sends; null: not spread.")
    ] = UNSET
    stalls: Annotated[
        tuple[Stall, ...] | UnsetType, doc("Times of 100 ms and more for which a load process did not run.")
    ] = UNSET
    suspended_ms: Annotated[
        float | UnsetType | None,
        doc("Time in the window for which the machine was suspended; null: the system does not count it."),
    ] = UNSET
    notes: Annotated[list[str], doc("For people.")]

    @property
    def spread_over_ns(self) -> int:
        """Time from t0 until the slots of a closed loop had spread their sends; 0 if they did not."""
        return round((known(self.spread_over_ms) or 0) * 1e6)
