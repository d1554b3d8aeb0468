"""One line of history/runs.jsonl: one backend at one load of one run."""

from typing import Annotated

from harness.model.load import LoadPoint
from harness.model.record import UNSET, Record, UnsetType, doc


class HistoryHost(Record, frozen=True, kw_only=True):
    """Facts that distinguish one machine from another. Null: could not be read."""

    cpu: Annotated[str | None, doc("Model name.")] = None
    cpu_features: Annotated[tuple[str, ...] | None, doc("Vector and matrix instructions.")] = None
    cpus_usable: Annotated[int | None, doc("Hardware threads that the run could use.")] = None
    gpus: Annotated[tuple[str, ...] | None, doc("Names; null: there is no driver.")] = None


class HistoryFigure(Record, frozen=True, kw_only=True):
    """One metric over the repeats of a run."""

    interval: Annotated[
        tuple[float | None, float, float | None], doc("Low, estimate, high; no bounds after one repeat.")
    ]
    runs: Annotated[int, doc("Repeats that have it.")]


class HistoryEntry(Record, frozen=True, kw_only=True):
    """One backend at one load of one run."""

    run: Annotated[str, doc("Name of its folder.")]
    created_utc: Annotated[str, doc("ISO 8601.")]
    scenario: Annotated[str, doc("Its name.")]
    host: Annotated[HistoryHost, doc("The machine.")]
    harness: Annotated[str | UnsetType | None, doc("Git revision; null: an installed package.")] = UNSET
    simulated: Annotated[bool | UnsetType, doc("Any cell is of a scripted server.")] = UNSET
    label: Annotated[str, doc("Backend as the run names it.")]
    load: Annotated[LoadPoint, doc("The load point.")]
    workload_sha256: Annotated[str | None, doc("Of the requests before the dialect.")]
    engine_version: Annotated[str | None, doc("As the engine or its package says.")]
    invalid: Annotated[int, doc("INVALID cells.")] = 0
    failed: Annotated[int | UnsetType, doc("Requests that failed, of INVALID cells as well.")] = UNSET
    ended: Annotated[int | UnsetType, doc("Requests that ended in an answer or a failure.")] = UNSET
    metrics: Annotated[dict[str, HistoryFigure], doc("By metric: those that get verdicts.")]

    @property
    def place(self) -> tuple[str, LoadPoint]:
        return self.label, self.load
