"""summary.json: everything that is derived from a run folder."""

from typing import Annotated, Literal

from harness.model.agreement import Agreement
from harness.model.cell import CellResult
from harness.model.claim import ClaimResult
from harness.model.comparison import (
    Capacity,
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
from harness.model.record import Record, doc
from harness.model.workload import WorkloadCard

RunState = Literal["complete", "invalid", "interrupted", "failed", "running"]


class RunWarning(Record, frozen=True, kw_only=True):
    """Something that a reader of the figures must know, about the whole run."""

    code: Annotated[IssueCode, doc("For programs: docs/validity.md.")]
    text: Annotated[str, doc("What is the matter.")]
    hint: Annotated[str | None, doc("What to do.")]


class ModelName(Record, frozen=True, kw_only=True):
    """The model that was served."""

    name: Annotated[str, doc("As --model takes it.")]
    title: Annotated[str, doc("For people.")]


class Summary(Record, frozen=True, kw_only=True):
    """Figures and verdicts of a run.

    Times are in ms unless a name says otherwise; `null_reasons` explain nulls. docs/metrics.md defines the
    figures.
    """

    run: Annotated[str, doc("Name of the run folder when it was made.")]
    state: Annotated[RunState, doc("invalid: complete with an INVALID cell.")]
    scenario: Annotated[str, doc("Its name.")]
    purpose: Annotated[str, doc("What the scenario is for.")]
    model: Annotated[ModelName | None, doc("Null where the backends brought their own.")]
    workload_sha256: Annotated[str | None, doc("Null where load points differ in their requests.")]
    simulated: Annotated[bool, doc("Any cell is.")]
    cells: Annotated[tuple[CellResult, ...], doc("In plan order.")]
    scaling: Annotated[dict[str, Scaling], doc("By label, over closed-loop cells.")]
    unequal: Annotated[tuple[Unequal, ...], doc("Conditions that differ between backends.")]
    comparison: Annotated[
        tuple[PairVerdict, ...], doc("A verdict per pair of labels, metric and load point.")
    ]
    noise: Annotated[tuple[Noise, ...], doc("Of --aa.")]
    estimates: Annotated[tuple[Estimate, ...], doc("Per label, metric and load point, over the repeats.")]
    ranking: Annotated[dict[str, str], doc("The rank line of each metric at the highest load.")]
    rankings: Annotated[tuple[Ranking, ...], doc("One per metric and load point.")]
    verdict_rules: Annotated[VerdictRules, doc("What the verdicts were found with.")]
    stopping: Annotated[Stopping | None, doc("Null where the number of repeats was fixed.")] = None
    capacity: Annotated[tuple[Capacity, ...] | None, doc("Of --find-capacity: one per backend.")]
    knees: Annotated[tuple[Knee, ...], doc("Of working sets: one per backend.")] = ()
    workload_card: Annotated[dict[str, WorkloadCard] | None, doc("What the requests are, by load point.")]
    agreement: Annotated[Agreement | None, doc("Whether the backends answered alike.")]
    warnings: Annotated[tuple[RunWarning, ...], doc("Of the whole run.")]
    claims: Annotated[tuple[ClaimResult, ...], doc("Published claims, checked with this run.")]
