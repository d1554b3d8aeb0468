"""One line of history/runs.jsonl: one backend at one load of one run, or the capacity that a run found."""

from typing import Annotated

from harness.model.load import LoadPoint
from harness.model.record import UNSET, Record, UnsetType, doc


class HistoryHost(Record, frozen=True, kw_only=True):
    """Facts that distinguish one machine from another. Null: could not be read."""

    cpu: Annotated[str | None, doc("Model name of the CPU.")] = None
    cpu_features: Annotated[tuple[str, ...] | None, doc("Vector and matrix instructions of the CPU.")] = None
    cpus_usable: Annotated[int | None, doc("Hardware threads that the run could use.")] = None
    gpus: Annotated[tuple[str, ...] | None, doc("Names of the GPUs; null: there is no driver.")] = None


class HistoryFigure(Record, frozen=True, kw_only=True):
    """One metric over the repeats of a run."""

    interval: Annotated[
        tuple[float | None, float, float | None],
        doc("Low, estimate, high, in the metric's unit; no bounds after one repeat, or not known."),
    ]
    runs: Annotated[int, doc("Repeats that have a figure of the metric; starts of a capacity search.")]
    printed_to: Annotated[
        float | UnsetType,
        doc("Last digit of figures as files print them, in the metric's unit; missing: none."),
    ] = UNSET


class HistoryLoad(Record, frozen=True, kw_only=True):
    """Requests of one load that a capacity search tried and that its answer surely covers."""

    value: Annotated[int | float, doc("The load, in the unit of the capacity.")]
    failed: Annotated[int, doc("Requests that failed.")]
    ended: Annotated[int, doc("Requests that ended in an answer or a failure.")]


class HistoryEntry(Record, frozen=True, kw_only=True):
    """One backend at one load of one run."""

    run: Annotated[str, doc("Name of the run folder.")]
    created_utc: Annotated[str, doc("Time at which the run began, UTC, ISO 8601.")]
    scenario: Annotated[str, doc("Name of the scenario.")]
    host: Annotated[HistoryHost, doc("Machine that ran bench.")]
    harness: Annotated[str | UnsetType | None, doc("Git revision of bench; null: not known.")] = UNSET
    simulated: Annotated[bool | UnsetType, doc("Whether any cell is of a scripted server.")] = UNSET
    label: Annotated[str, doc("Backend as the run names it.")]
    load: Annotated[LoadPoint | None, doc("Load point of the figures; null: of a capacity search.")]
    searched: Annotated[
        tuple[int | float, int | float] | UnsetType,
        doc("Lowest and highest load of a capacity search; missing: none was made."),
    ] = UNSET
    workload_sha256: Annotated[
        str | None,
        doc("SHA-256 of the first requests, before the engine's dialect: first repeat, or first probe."),
    ]
    prompt_tokens_mean: Annotated[
        float | UnsetType, doc("Mean tokens per prompt of requests without a hash; missing: not known.")
    ] = UNSET
    output_tokens_mean: Annotated[
        float | UnsetType, doc("Mean tokens per answer of requests without a hash; missing: not known.")
    ] = UNSET
    engine_version: Annotated[
        str | None, doc("Version by the engine or its package, or all that it had; null: not known.")
    ]
    conditions: Annotated[
        dict[str, str] | UnsetType,
        doc("Engine, and conditions of the load that forbid a comparison where they differ, by code."),
    ] = UNSET
    invalid: Annotated[int, doc("INVALID cells of this backend and load.")] = 0
    failed: Annotated[int | UnsetType, doc("Requests that failed, of INVALID cells as well.")] = UNSET
    ended: Annotated[int | UnsetType, doc("Requests that ended in an answer or a failure.")] = UNSET
    carried: Annotated[
        tuple[HistoryLoad, ...] | UnsetType,
        doc("Loads that a capacity search tried and that are surely carried; missing: none, or not kept."),
    ] = UNSET
    metrics: Annotated[
        dict[str, HistoryFigure],
        doc("Figures by metric: those that get verdicts, and the p99 of E2E; of a search its capacity."),
    ]

    @property
    def place(self) -> tuple[str, LoadPoint | None]:
        return self.label, self.load

    @property
    def where(self) -> str:
        """`vllm c8`; `vllm` where the figure is a load itself."""
        return f"{self.label} {self.load.label}" if self.load else self.label
