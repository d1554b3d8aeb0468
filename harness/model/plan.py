"""Plans of a run: plan.json of its folder, and what `bench run --dry-run --json` prints."""

from typing import Annotated

from harness.model.load import LoadPoint
from harness.model.manifest import LaunchChoice, ScenarioTables
from harness.model.record import UNSET, Record, UnsetType, doc


class PlanCell(Record, frozen=True, kw_only=True):
    """One backend at one load point in one repeat."""

    cell: Annotated[str, doc("Its name, and its folder below cells/.")]
    load: Annotated[LoadPoint, doc("The load point.")]


class PlanBlock(Record, frozen=True, kw_only=True):
    """Cells that are measured between one start of an engine and its stop."""

    backend: Annotated[str, doc("Its label.")]
    repeat: Annotated[int, doc("From 0.")]
    cells: Annotated[tuple[PlanCell, ...], doc("In the order of their measurement.")]
    start: Annotated[
        int | UnsetType, doc("From 0; engines of one start are up together; absent: they take turns.")
    ] = UNSET


class Plan(Record, frozen=True, kw_only=True):
    """The cells that a run was going to measure when it began, in order."""

    blocks: Annotated[tuple[PlanBlock, ...], doc("In the order of their measurement.")]


class PlannedLaunch(LaunchChoice, frozen=True, kw_only=True):
    """How a backend would be started or reached, and on which device."""

    device: Annotated[
        str, doc("Of a container: cuda, rocm or cpu; of a process: cuda where its packages are; else empty.")
    ]


class PlannedBackend(Record, frozen=True, kw_only=True):
    """One backend of the plan."""

    launch: Annotated[PlannedLaunch, doc("How it would be started, or reached.")]
    track: Annotated[str | None, doc("Weights: file format and quantisation; null: its own.")]
    known: Annotated[tuple[str, ...], doc("What is known of it whatever is measured, one line each.")]


class PlannedCell(Record, frozen=True, kw_only=True):
    """One backend at one load point in one repeat, and how long that takes."""

    cell: Annotated[str, doc("Its name.")]
    backend: Annotated[str, doc("Its label.")]
    load: Annotated[str, doc("The load point, for people.")]
    expected_s: Annotated[float | None, doc("Time under load, s; null: nothing to judge by.")]
    basis: Annotated[str, doc("What it was judged by.")]


class MissingNeed(Record, frozen=True, kw_only=True):
    """Something that this machine lacks."""

    labels: Annotated[tuple[str, ...], doc("Backends that need it.")]
    what: Annotated[str, doc("What is missing.")]
    then: Annotated[str, doc("What to do about it; may be empty.")]


class DryRun(Record, frozen=True, kw_only=True):
    """The plan of a run that is not started."""

    scenario: Annotated[ScenarioTables, doc("The whole definition, with what the command line replaced.")]
    scenario_sha256: Annotated[str, doc("Of that definition.")]
    model: Annotated[str, doc("As --model takes it.")]
    backends: Annotated[dict[str, PlannedBackend], doc("By label.")]
    cells: Annotated[tuple[PlannedCell, ...], doc("In the order of their measurement.")]
    looks: Annotated[
        tuple[int, ...],
        doc("Repeats after which --repeats auto looks at the verdicts; empty: no looks."),
    ]
    expected_s: Annotated[float | None, doc("Of all cells, s; null where one is not known.")]
    expected_starts_s: Annotated[
        float | None, doc("Of all engine starts and pauses, s; null where one is not known.")
    ]
    missing: Annotated[tuple[MissingNeed, ...], doc("What this machine lacks for it.")]
    refused: Annotated[
        tuple[str, ...],
        doc("Pairs of backends that will get no verdict, as far as it is known before the run."),
    ]
