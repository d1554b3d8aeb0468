"""The document that `bench compare --json` prints: runs against a baseline."""

from typing import Annotated, Literal

from harness.model.agreement import AccuracyChange
from harness.model.comparison import Capacity, CapacityPair, PairVerdict, VerdictRules
from harness.model.load import LoadPoint
from harness.model.per_user import SpeedLevel
from harness.model.record import Record, doc


class ComparedRun(Record, frozen=True, kw_only=True):
    """One of the runs that are compared."""

    name: Annotated[str, doc("Name of the run here: that of its folder, made unique.")]
    run: Annotated[str, doc("Name of the run folder when it was made.")]
    created_utc: Annotated[str, doc("Time at which the run began, UTC, ISO 8601.")]
    hostname: Annotated[str | None, doc("Host name of the machine that measured; null: not known.")]
    scenario: Annotated[str, doc("Name of the scenario.")]
    state: Annotated[str, doc("State of the run: complete, interrupted, failed or running.")]
    simulated: Annotated[bool, doc("Whether any cell is of a scripted server.")]
    imported: Annotated[
        tuple[str, ...],
        doc("Other tools that measured cells of the run, in words; empty: bench measured all."),
    ] = ()
    capacity: Annotated[
        tuple[Capacity, ...], doc("Capacity of each backend; empty: a run without --find-capacity.")
    ] = ()


class ComparedLabel(Record, frozen=True, kw_only=True):
    """One backend of one of the runs."""

    run: Annotated[str, doc("Name of the run, as in `runs`.")]
    label: Annotated[str, doc("Label of the backend in that run.")]


class Difference(Record, frozen=True):
    """A condition in which two measurements differ."""

    what: Annotated[str, doc("Title of the condition that differs.")]
    baseline: Annotated[str, doc("Value of the condition at the baseline.")]
    new: Annotated[str, doc("Value of the condition at the new one.")]
    matters: Annotated[
        bool, doc("Whether a verdict would be about this and not about what the two have in common.")
    ]

    @property
    def text(self) -> str:
        return f"{self.what}: {self.baseline} | {self.new}"


class ComparedFigure(PairVerdict, frozen=True, kw_only=True):
    """A verdict with the two figures it is about."""

    values: Annotated[
        tuple[float | None, float | None],
        doc("Estimates of a and of b, in the metric's unit; null: no figure."),
    ]

    @property
    def undecided(self) -> bool:
        return self.verdict in ("not enough runs", "not comparable")


class ComparedPair(Record, frozen=True, kw_only=True):
    """Two backends, of one run or of two."""

    a: Annotated[ComparedLabel, doc("Backend and run of the new side.")]
    b: Annotated[ComparedLabel, doc("Backend and run of the baseline.")]
    differences: Annotated[tuple[Difference, ...], doc("Conditions in which the two differ.")]
    refused: Annotated[str | None, doc("Reason why the two are not compared; null: they are.")]
    findings: Annotated[tuple[ComparedFigure, ...], doc("Verdicts by load point and metric.")]
    verdict_rules: Annotated[VerdictRules, doc("Rules that the verdicts were found with.")]
    capacity: Annotated[
        CapacityPair | None, doc("Verdict on their capacities; null: not both were searched for.")
    ] = None
    per_user: Annotated[
        tuple[SpeedLevel, ...], doc("Output tokens/s at equal speed per user; empty: no speed to compare at.")
    ] = ()


class MissingFigure(Record, frozen=True, kw_only=True):
    """Something that the baseline has and a later run lacks."""

    run: Annotated[str, doc("Name of the run that lacks it, as in `runs`.")]
    label: Annotated[str, doc("Label of the backend that lacks it.")]
    load: Annotated[LoadPoint | None, doc("Load point at which it is missing; null: every load point.")]
    metric: Annotated[str | None, doc("Metric that is missing; null: all metrics.")]
    why: Annotated[str, doc("Explanation of what is missing, in words.")]
    allowed: Annotated[bool, doc("Whether --allow-missing allows it.")]


class ComparedDoubt(Record, frozen=True, kw_only=True):
    """Doubts about the figures of one backend at one load that are compared."""

    about: Annotated[ComparedLabel, doc("Backend and run of these repeats.")]
    load: Annotated[LoadPoint, doc("Load point of these repeats.")]
    suspect: Annotated[int, doc("Repeats that are SUSPECT for a metric that is compared.")]
    repeats: Annotated[int, doc("Repeats that are compared.")]
    codes: Annotated[dict[str, int], doc("Validity rules that were broken, and in how many repeats.")]


class ComparedAccuracy(Record, frozen=True, kw_only=True):
    """Answers of two backends, of one run or of two, to the same questions."""

    a: Annotated[ComparedLabel, doc("Backend and run of the new side.")]
    b: Annotated[ComparedLabel, doc("Backend and run of the baseline.")]
    change: Annotated[
        AccuracyChange | None, doc("Change in correct answers, new against baseline; null: nothing compares.")
    ]
    under_load: Annotated[bool, doc("Whether the answers were given under load.")]
    why: Annotated[str, doc("Figures of the change, or why there are none, in words.")]


GateKind = Literal[
    "slower", "limit", "failures", "stalls", "accuracy", "missing", "not compared", "undecided"
]


class GateRow(Record, frozen=True, kw_only=True):
    """One finding of a gate, which fails on each that its user did not accept."""

    kind: Annotated[
        GateKind,
        doc(
            "Kind of finding: slower, limit (of a run alone), failures, stalls and accuracy are worse; "
            "the others are not known."
        ),
    ]
    run: Annotated[str, doc("Name of the new run, as in `runs`.")]
    label: Annotated[str, doc("Label of the backend in the new run.")]
    load: Annotated[LoadPoint | None, doc("Load point of the finding; null: all, or none in particular.")]
    metric: Annotated[str | None, doc("Metric of the finding; null: all, or none in particular.")]
    why: Annotated[str, doc("Figures and reason, in words.")]


class RunComparison(Record, frozen=True, kw_only=True):
    """The whole comparison: every pair, what is missing, and what a gate fails on."""

    runs: Annotated[tuple[ComparedRun, ...], doc("Runs that are compared, in the order they were named.")]
    baseline: Annotated[str | None, doc("Name of the run that holds the baseline; null: nothing to compare.")]
    pairs: Annotated[tuple[ComparedPair, ...], doc("Pairs of a new backend and its baseline.")]
    doubts: Annotated[
        tuple[ComparedDoubt, ...], doc("Doubts about what is compared, by backend and load.")
    ] = ()
    missing: Annotated[tuple[MissingFigure, ...], doc("Figures that the baseline has and a later run lacks.")]
    accuracy: Annotated[
        tuple[ComparedAccuracy, ...],
        doc("Accuracy of each pair in each condition; empty: no questions were asked."),
    ] = ()
    gate: Annotated[
        tuple[GateRow, ...], doc("Rows that the gates of --fail-on fail on; without it, those of slower.")
    ] = ()
