"""Plans of a run: plan.json of its folder, and what `bench run --dry-run --json` prints."""

from typing import Annotated

from harness.model.load import LoadPoint
from harness.model.manifest import LaunchChoice, ScenarioTables
from harness.model.record import UNSET, Record, UnsetType, doc
from harness.model.summary import RunWarning


class PlanCell(Record, frozen=True, kw_only=True):
    """One backend at one load point in one repeat."""

    cell: Annotated[str, doc("Name of the cell, and of its folder below cells/.")]
    load: Annotated[LoadPoint, doc("Load point of the cell.")]


class PlanBlock(Record, frozen=True, kw_only=True):
    """Cells that are measured between one start of an engine and its stop."""

    backend: Annotated[str, doc("Label of the backend.")]
    repeat: Annotated[int, doc("Number of the repeat, from 0.")]
    cells: Annotated[tuple[PlanCell, ...], doc("Cells in the order of their measurement.")]
    start: Annotated[
        int | UnsetType,
        doc("Number of the start, from 0, whose engines are up together; missing: they take turns."),
    ] = UNSET


class Plan(Record, frozen=True, kw_only=True):
    """The cells that a run was going to measure when it began, in order."""

    blocks: Annotated[tuple[PlanBlock, ...], doc("Blocks in the order of their measurement.")]


class PlannedLaunch(LaunchChoice, frozen=True, kw_only=True):
    """How a backend would be started or reached, and on which device."""

    device: Annotated[
        str,
        doc(
            "Device of a container: cuda, rocm or cpu; of a process: cuda where its packages are, cpu where "
            "GPUs are hidden from it, else empty."
        ),
    ]


class PlannedBackend(Record, frozen=True, kw_only=True):
    """One backend of the plan."""

    launch: Annotated[PlannedLaunch, doc("How the backend would be started or reached.")]
    track: Annotated[str | None, doc("Weights: file format and quantisation; null: the server's own.")]
    known: Annotated[tuple[str, ...], doc("Facts known of the backend whatever is measured, one line each.")]
    flags: Annotated[
        tuple[str, ...],
        doc("Flags that the engine would get, after those that name its weights; empty: a running server."),
    ]
    variables: Annotated[
        dict[str, str], doc("Variables that its definition sets; the machine's own are left out.")
    ]
    gpus: Annotated[
        tuple[str, ...],
        doc("NVIDIA GPUs that the engine would get, by index or UUID; empty: none, or it finds them itself."),
    ] = ()


class PlannedCell(Record, frozen=True, kw_only=True):
    """One backend at one load point in one repeat, and how long that takes."""

    cell: Annotated[str, doc("Name of the cell.")]
    backend: Annotated[str, doc("Label of the backend.")]
    load: Annotated[str, doc("Load point in words, such as 8 in flight.")]
    expected_s: Annotated[float | None, doc("Expected time under load; null: nothing to judge by.")]
    basis: Annotated[str, doc("Basis of the expected time.")]


class MissingNeed(Record, frozen=True, kw_only=True):
    """Something that this machine lacks."""

    labels: Annotated[tuple[str, ...], doc("Backends that need it.")]
    what: Annotated[str, doc("Missing thing, in words.")]
    then: Annotated[str, doc("Advice on what to do; may be empty.")]


class DryRun(Record, frozen=True, kw_only=True):
    """The plan of a run that is not started."""

    scenario: Annotated[ScenarioTables, doc("Scenario, with what the command line replaced.")]
    scenario_sha256: Annotated[str, doc("SHA-256 of the scenario.")]
    model: Annotated[str, doc("Name of the model, as --model takes it.")]
    backends: Annotated[dict[str, PlannedBackend], doc("Backends of the plan by label.")]
    cells: Annotated[tuple[PlannedCell, ...], doc("Cells in the order of their measurement.")]
    looks: Annotated[
        tuple[int, ...], doc("Repeats after which --repeats auto looks at the verdicts; empty: no looks.")
    ]
    expected_s: Annotated[
        float | None,
        doc("Expected time under load of all cells, of a search that of the last one; null: not known."),
    ]
    expected_starts_s: Annotated[
        float | None, doc("Expected time of all engine starts and pauses; null where one is not known.")
    ]
    questions: Annotated[int, doc("Questions to each engine, about the text of its answers; 0: none.")]
    longest_questions_s: Annotated[float, doc("Longest time that an engine is asked these questions.")]
    missing: Annotated[tuple[MissingNeed, ...], doc("Needs of the backends that this machine lacks.")]
    refused: Annotated[
        tuple[str, ...],
        doc("Pairs of backends that will get no verdict, as far as it is known before the run."),
    ]
    warnings: Annotated[
        tuple[RunWarning, ...], doc("Warnings of the file that prompts come from, which the run will give.")
    ] = ()
