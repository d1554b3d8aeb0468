"""The document that `bench compare --json` prints: runs against a baseline."""

from typing import Annotated, Literal

from harness.model.agreement import AccuracyChange
from harness.model.comparison import PairVerdict, VerdictRules
from harness.model.load import LoadPoint
from harness.model.record import Record, doc


class ComparedRun(Record, frozen=True, kw_only=True):
    """One of the runs that are compared."""

    name: Annotated[str, doc("Its folder's, unique among those compared.")]
    run: Annotated[str, doc("Name of the run folder when it was made.")]
    created_utc: Annotated[str, doc("ISO 8601.")]
    hostname: Annotated[str | None, doc("Of its machine.")]
    scenario: Annotated[str, doc("Its name.")]
    state: Annotated[str, doc("Whether it came to its end.")]
    simulated: Annotated[bool, doc("Any cell is of a scripted server.")]
    imported: Annotated[tuple[str, ...], doc("Where bench did not measure: who did.")] = ()


class ComparedLabel(Record, frozen=True, kw_only=True):
    """One backend of one of the runs."""

    run: Annotated[str, doc("By its name here.")]
    label: Annotated[str, doc("Backend as the run names it.")]


class Difference(Record, frozen=True):
    """A condition in which two measurements differ."""

    what: Annotated[str, doc("Condition.")]
    baseline: Annotated[str, doc("Of the baseline.")]
    new: Annotated[str, doc("Of the other.")]
    matters: Annotated[bool, doc("A verdict would be about this and not about what the two have in common.")]

    @property
    def text(self) -> str:
        return f"{self.what}: {self.baseline} | {self.new}"


class ComparedFigure(PairVerdict, frozen=True, kw_only=True):
    """A verdict with the two figures it is about."""

    values: Annotated[tuple[float | None, float | None], doc("Of a and of b, in the metric's unit.")]

    @property
    def undecided(self) -> bool:
        return self.verdict in ("not enough runs", "not comparable")


class ComparedPair(Record, frozen=True, kw_only=True):
    """Two backends, of one run or of two."""

    a: Annotated[ComparedLabel, doc("The new one.")]
    b: Annotated[ComparedLabel, doc("The baseline.")]
    differences: Annotated[tuple[Difference, ...], doc("Of their conditions.")]
    refused: Annotated[str | None, doc("Why they are not compared; null: they are.")]
    findings: Annotated[tuple[ComparedFigure, ...], doc("By load point and metric.")]
    verdict_rules: Annotated[VerdictRules, doc("What the verdicts were found with.")]


class MissingFigure(Record, frozen=True, kw_only=True):
    """Something that the baseline has and a later run lacks."""

    run: Annotated[str, doc("That lacks it, by its name here.")]
    label: Annotated[str, doc("Backend.")]
    load: Annotated[LoadPoint | None, doc("Null: at every load point.")]
    metric: Annotated[str | None, doc("Null: all of them.")]
    why: Annotated[str, doc("In words.")]
    allowed: Annotated[bool, doc("By --allow-missing.")]


class ComparedAccuracy(Record, frozen=True, kw_only=True):
    """Answers of two backends, of one run or of two, to the same questions."""

    a: Annotated[ComparedLabel, doc("The new one.")]
    b: Annotated[ComparedLabel, doc("The baseline.")]
    change: Annotated[AccuracyChange | None, doc("Of the new against the baseline; null: nothing compares.")]
    under_load: Annotated[bool, doc("Of the answers under load.")]
    why: Annotated[str, doc("The figures, or why there are none, for people.")]


GateKind = Literal["slower", "failures", "stalls", "accuracy", "missing", "not compared", "undecided"]


class GateRow(Record, frozen=True, kw_only=True):
    """One finding of a gate, which fails on each that its user did not accept."""

    kind: Annotated[
        GateKind, doc("slower, failures, stalls and accuracy: worse than the baseline; else not known.")
    ]
    run: Annotated[str, doc("The new one, by its name here.")]
    label: Annotated[str, doc("Backend.")]
    load: Annotated[LoadPoint | None, doc("Null: at every load point.")]
    metric: Annotated[str | None, doc("Null: all of them, or none in particular.")]
    why: Annotated[str, doc("The figures and the reason, for people.")]


class RunComparison(Record, frozen=True, kw_only=True):
    """The whole comparison: every pair, what is missing, and what a gate fails on."""

    runs: Annotated[tuple[ComparedRun, ...], doc("In the order they were named.")]
    baseline: Annotated[str | None, doc("Run that holds it; null: nothing to compare.")]
    pairs: Annotated[tuple[ComparedPair, ...], doc("New against baseline.")]
    missing: Annotated[tuple[MissingFigure, ...], doc("What a baseline has and a later run lacks.")]
    accuracy: Annotated[
        tuple[ComparedAccuracy, ...], doc("Per pair and condition, where questions were asked.")
    ] = ()
    gate: Annotated[
        tuple[GateRow, ...], doc("What --fail-on slower fails on; what --allow-missing names is left out.")
    ] = ()
