"""Part of cell.json: what sampled a cell, and what could not be. The samples are in telemetry.parquet."""

from typing import Annotated, Any

from harness.model.client import Stall
from harness.model.record import UNSET, Record, UnsetType, doc, from_json


class _Mig(Record, frozen=True, kw_only=True):
    number: int
    uuid: str


class _Device(Record, frozen=True, kw_only=True):
    index: int
    name: str | None
    uuid: str | None
    memory_bytes: int | None
    power_limit_w: float | None
    mig: tuple[_Mig, ...]


class _Lost(Record, frozen=True, kw_only=True):
    why: str


class _About(Record, frozen=True, kw_only=True):
    """Keys of `about` that figures of processors and GPUs are made of."""

    cpus: int | UnsetType | None = UNSET
    cpu_quotas: dict[str, float] | UnsetType = UNSET
    engine_processes: dict[str, str] | UnsetType = UNSET
    devices: tuple[_Device, ...] | UnsetType = UNSET
    chosen: str | UnsetType = UNSET
    lost: dict[str, _Lost] | UnsetType = UNSET


class SampledSource(Record, frozen=True, kw_only=True):
    """One source of telemetry: its reads and failures, and what it says of itself."""

    period_s: Annotated[float, doc("Time between two reads, s.")]
    reads: Annotated[int, doc("Reads that worked.")]
    failures: Annotated[int, doc("Reads that failed.")]
    last_failure: Annotated[str, doc("Error of the last read that failed; empty: none did.")]
    longest_read_ms: Annotated[float, doc("Time of the slowest read, ms.")]
    cpu_s: Annotated[float | UnsetType, doc("CPU time that its reads took, s.")] = UNSET
    unavailable: Annotated[str, doc("Reason why there is nothing from the source at all; empty: there is.")]
    missing: Annotated[dict[str, str], doc("Reasons why series could not be read, by series.")]
    # Each source says other things of itself: GPUs, processes, an address.
    about: Annotated[dict[str, Any], doc("Facts that the source found, in keys of its own.")]
    failing_since_s: Annotated[
        float | None,
        doc("Time since which reads fail, s from the start of the cell; null: the last one worked."),
    ]

    def __post_init__(self) -> None:
        """Raises ValueError for facts that no figure can be made of."""
        from_json(self.about, _About)


class Sampled(Record, frozen=True, kw_only=True):
    """Telemetry of a cell: its sources, the cost of sampling, and what could not be sampled."""

    requested: Annotated[bool, doc("Whether anything was to be sampled.")]
    problem: Annotated[
        str | None, doc("Reason why samples are missing or end early; null: they are complete.")
    ]
    sources: Annotated[dict[str, SampledSource], doc("Sources of telemetry, by name.")]
    sampler: Annotated[
        dict[str, int | float] | UnsetType,
        doc("Cost of the sampler: cpu_s, wall_s and peak_rss_bytes; missing: off, or killed."),
    ] = UNSET
    stalls: Annotated[
        tuple[Stall, ...] | UnsetType,
        doc("Times of 100 ms and more for which the sampler did not run; missing: off, or killed."),
    ] = UNSET
