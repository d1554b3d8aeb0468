"""summary.json: everything that is derived from a run folder."""

from collections.abc import Iterable
from typing import Annotated, Literal

from harness.model.agreement import Agreement
from harness.model.cell import CellResult
from harness.model.change import FLAGS, Flags
from harness.model.claim import ClaimResult
from harness.model.comparison import (
    Capacity,
    CapacityPair,
    Estimate,
    Knee,
    Noise,
    PairVerdict,
    Ranking,
    Scaling,
    Stopping,
    Unequal,
    VerdictRules,
)
from harness.model.issue import IssueCode
from harness.model.per_user import SpeedLevel
from harness.model.record import UNSET, Record, UnsetType, doc
from harness.model.workload import WorkloadCard

RunState = Literal["complete", "invalid", "interrupted", "failed", "running"]


class RunWarning(Record, frozen=True, kw_only=True):
    """Something that a reader of the figures must know, about the whole run."""

    code: Annotated[IssueCode, doc("Code of the warning, for programs: docs/validity.md.")]
    text: Annotated[str, doc("Warning in words.")]
    hint: Annotated[str | None, doc("Advice on what to do; null: none.")]
    backend: Annotated[
        str | UnsetType, doc("Label of the backend that it is about; not written: none, or several.")
    ] = UNSET
    change: Annotated[Flags | UnsetType, doc(FLAGS)] = UNSET


class ModelName(Record, frozen=True, kw_only=True):
    """The model that was served."""

    name: Annotated[str, doc("Name of the model, as --model takes it.")]
    title: Annotated[str, doc("Name of the model for people.")]


class Summary(Record, frozen=True, kw_only=True):
    """Figures and verdicts of a run.

    Times are in ms unless a name says otherwise; `null_reasons` explain nulls. docs/metrics.md defines the
    figures.
    """

    run: Annotated[str, doc("Name of the run folder when it was made.")]
    state: Annotated[RunState, doc("State of the run; invalid: complete, with an INVALID cell.")]
    scenario: Annotated[str, doc("Name of the scenario.")]
    purpose: Annotated[str, doc("Purpose of the scenario, for people.")]
    model: Annotated[ModelName | None, doc("Model that was served; null: the backends brought their own.")]
    workload_sha256: Annotated[
        str | None, doc("SHA-256 of the requests of all load points in the first repeat; null: not known.")
    ]
    simulated: Annotated[bool, doc("Whether any cell is of a scripted server.")]
    cells: Annotated[tuple[CellResult, ...], doc("Cells in the order of the plan.")]
    scaling: Annotated[
        dict[str, Scaling], doc("Figures against concurrency by label, over closed-loop cells.")
    ]
    unequal: Annotated[tuple[Unequal, ...], doc("Conditions that differ between backends.")]
    comparison: Annotated[
        tuple[PairVerdict, ...], doc("Verdicts, one per pair of labels, metric and load point.")
    ]
    noise: Annotated[tuple[Noise, ...], doc("Difference of each backend from itself; empty without --aa.")]
    estimates: Annotated[
        tuple[Estimate, ...], doc("Estimates per label, metric and load point, over the repeats.")
    ]
    ranking: Annotated[dict[str, str], doc("Rank line of each metric at the highest load.")]
    rankings: Annotated[tuple[Ranking, ...], doc("Rank lines, one per metric and load point.")]
    verdict_rules: Annotated[VerdictRules, doc("Rules by which the verdicts were found.")]
    stopping: Annotated[Stopping | None, doc("Looks of --repeats auto; null: a fixed number of repeats.")] = (
        None
    )
    capacity: Annotated[
        tuple[Capacity, ...] | None, doc("Capacity of each backend; null: a run without --find-capacity.")
    ]
    capacity_pairs: Annotated[
        tuple[CapacityPair, ...], doc("Verdicts on capacities, one per pair of labels; empty: not searched.")
    ] = ()
    per_user: Annotated[
        tuple[SpeedLevel, ...],
        doc("Output tokens/s at equal speed per user, a family of verdicts of their own; empty: none."),
    ] = ()
    knees: Annotated[tuple[Knee, ...], doc("Knee of the hit rate over working sets, one per backend.")] = ()
    workload_card: Annotated[
        dict[str, WorkloadCard] | None, doc("Description of the requests by load point; null: not kept.")
    ]
    agreement: Annotated[Agreement | None, doc("Agreement of the backends' answers; null: not compared.")]
    warnings: Annotated[tuple[RunWarning, ...], doc("Warnings of the whole run.")]
    claims: Annotated[tuple[ClaimResult, ...], doc("Published claims, checked with this run.")]


def labels(cells: Iterable[CellResult]) -> list[str]:
    """Labels in the order in which they were first measured, which is the user's."""
    return list(dict.fromkeys(cell.label for cell in cells))
