"""Parts of summary.json about several cells: verdicts, rank lines, estimates, noise, capacity."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from harness.model.choices import Pairing
from harness.model.load import LoadPoint
from harness.model.metric import Better
from harness.model.record import Record, doc

Number = int | float
Word = Literal["faster", "slower", "same", "not enough runs", "not comparable"]
Method = Literal["runs", "pooled"]


class Interval(msgspec.Struct, frozen=True, array_like=True):
    """Bounds of an interval around an estimate, written as `[low, estimate, high]`."""

    low: float
    estimate: float
    high: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.estimate, self.high))


class Levels(Record, frozen=True, kw_only=True):
    """Spread of a log ratio over blocks and over starts, and the repeats that would decide it soonest."""

    within: Annotated[float, doc("Standard deviation between blocks of one start.")]
    between: Annotated[float, doc("Standard deviation between starts, apart from that of their blocks.")]
    blocks: Annotated[int | None, doc("Of each start; null: the starts that are allowed would not decide.")]
    starts: Annotated[int | None, doc("How many.")]
    seconds: Annotated[float | None, doc("That so many blocks in so many starts would take.")]


class PairVerdict(Record, frozen=True, kw_only=True):
    """Verdict about `a` against `b` at one load in one metric; ratios and differences are a over b and a
    minus b.
    """

    a: Annotated[str, doc("Label; the verdict is about it.")]
    b: Annotated[str, doc("Label it is compared with.")]
    load: Annotated[LoadPoint, doc("Where both were measured.")]
    metric: Annotated[str, doc("Dotted path in a cell.")]
    better: Annotated[Better, doc("Which values of the metric are better.")]
    ratio: Annotated[Interval | None, doc("a / b: low, estimate, high.")] = None
    family_ratio: Annotated[
        Interval | None, doc("As ratio, at the level that the family allows this comparison.")
    ] = None
    difference: Annotated[Interval | None, doc("a - b, in the metric's unit.")] = None
    runs: Annotated[tuple[int, int], doc("Of a and of b, with a figure.")]
    measured: Annotated[tuple[int, int], doc("Runs of a and of b, INVALID ones included.")] = (0, 0)
    failed: Annotated[tuple[int, int], doc("Of these, runs without a figure by the engine's doing.")] = (0, 0)
    left_out: Annotated[
        tuple[dict[str, int], dict[str, int]],
        doc("Of a and of b, runs that are no evidence for this metric, by why; the verdict holds with them."),
    ] = ({}, {})
    paired: Annotated[bool, doc("Runs of the same requests were compared.")] = False
    method: Annotated[Method, doc("runs: a number per run; pooled: the requests of all runs.")] = "runs"
    verdict: Annotated[Word, doc("docs/verdicts.md.")]
    why: Annotated[str, doc("In words.")]
    lacks: Annotated[str, doc("Why there are not enough runs, without figures; empty with a verdict.")] = ""
    runs_needed: Annotated[
        int | None,
        doc("Of each, as evidence, that would give a verdict; null with one, and where more would hardly."),
    ] = None
    levels: Annotated[
        Levels | None, doc("Of the primary metric of engines that were up together, from two starts on.")
    ] = None
    primary: Annotated[bool, doc("Of the metric that decides.")] = False
    p_holm: Annotated[float | None, doc("Of a difference within the floor, adjusted for the family.")] = None
    p_same_holm: Annotated[
        float | None, doc("Of a difference beyond the margin of same, adjusted for the family.")
    ] = None
    smallest_detectable: Annotated[
        float | None, doc("Relative effect that as many runs would have found in 4 of 5 experiments.")
    ] = None
    chance: Annotated[
        float | None,
        doc("That the last look planned gives a word; null with a word, or without later looks."),
    ] = None

    @property
    def tested(self) -> bool:
        """Whether there were enough runs for an interval, or runs that failed."""
        return self.ratio is not None or any(self.failed)


class Estimate(Record, frozen=True, kw_only=True):
    """One metric of one backend at one load, estimated over the repeats."""

    label: Annotated[str, doc("Backend as the run names it.")]
    load: Annotated[LoadPoint, doc("Where it was measured.")]
    metric: Annotated[str, doc("Dotted path in a cell.")]
    interval: Annotated[
        tuple[float | None, float, float | None], doc("Low, estimate, high, of 95 % confidence.")
    ]
    runs: Annotated[int, doc("With a figure.")]
    method: Annotated[Method, doc("runs: a number per run; pooled: the requests of all runs.")]

    @property
    def whole(self) -> tuple[float, float, float] | None:
        """The interval; None if one of its ends is not known."""
        low, middle, high = self.interval
        return None if low is None or high is None else (low, middle, high)


class Ranking(Record, frozen=True, kw_only=True):
    """The rank line of one metric at one load."""

    load: Annotated[LoadPoint, doc("Where all were measured.")]
    metric: Annotated[str, doc("Dotted path in a cell.")]
    line: Annotated[str, doc("docs/verdicts.md has the signs.")]
    primary: Annotated[bool, doc("Of the metric that decides.")]
    groups: Annotated[
        tuple[tuple[str, ...], ...], doc("Best first; inside one nothing is shown to be better.")
    ]
    weights: Annotated[
        dict[str, str] | None, doc("By backend, where they do not all serve the same weights.")
    ] = None


class Noise(Record, frozen=True, kw_only=True):
    """Difference between a backend and itself, as --aa measured it."""

    backend: Annotated[str, doc("Its name, without #a and #b.")]
    load: Annotated[LoadPoint, doc("Where it was measured.")]
    metric: Annotated[str, doc("Dotted path in a cell.")]
    ratio: Annotated[Interval, doc("Low, estimate, high.")]
    difference: Annotated[float, doc("Size of the difference that was found, as a share.")]
    difference_upper: Annotated[float, doc("Farther end of its interval, as a share.")]
    smallest_detectable: Annotated[float | None, doc("As in a verdict.")]
    verdict: Annotated[Word, doc("docs/verdicts.md.")]


class Unequal(Record, frozen=True):
    """A condition that differs between backends."""

    code: Annotated[str, doc("Of the table of conditions.")]
    labels: Annotated[tuple[str, ...], doc("Backends it is about.")]
    text: Annotated[str, doc("In words, with the values.")]
    matters: Annotated[bool, doc("A verdict would be about this, not about the engines.")]
    metrics: Annotated[tuple[str, ...], doc("That it forbids to compare; empty: any.")] = ()
    apart: Annotated[
        float, doc("By which share it may move a ratio of these metrics: the floor of a verdict grows by it.")
    ] = 0.0
    what: Annotated[str, doc("The condition in few words; empty: only its code is known.")] = ""


class VerdictRules(Record, frozen=True, kw_only=True):
    """Settings that the verdicts were found with: metrics, levels, floors and looks."""

    primary: Annotated[str, doc("The metric that decides.")]
    metrics: Annotated[tuple[str, ...], doc("All declared ones, the primary one first.")]
    alpha: Annotated[float, doc("Of each family of tests.")]
    min_runs: Annotated[int, doc("Fewest runs of a verdict.")]
    floor: Annotated[float, doc("Smallest relative difference that counts.")]
    measured_floors: Annotated[
        dict[str, dict[str, dict[str, float]]], doc("By backend, load and metric: what --aa found.")
    ]
    same_within: Annotated[float, doc("Margin of same, as a share.")]
    large_difference: Annotated[float, doc("Share beyond which a rank line says >>.")]
    separate_sessions: Annotated[bool, doc("Measured in different sessions.")]
    forced: Annotated[bool, doc("What is unequal is overlooked.")]
    looks: Annotated[
        tuple[int, ...], doc("Repeats after which verdicts may be decided; empty: after all.")
    ] = ()
    last_look: Annotated[int, doc("Repeats at the last look that was taken.")] = 0
    between_repeats: Annotated[dict[str, str], doc("By backend: restart, reset or keep.")] = msgspec.field(
        default_factory=dict
    )
    pairing: Annotated[Pairing, doc("starts, blocks or duet: whether engines were up together.")] = "starts"
    blocks: Annotated[int, doc("Repeats of one start; an interval over starts takes their mean.")] = 1
    confidence: Annotated[float, doc("Of the intervals next to the verdicts.")]
    look_alpha: Annotated[float | None, doc("Level of one look.")] = None
    unit: Annotated[str | None, doc("What an interval is over.")] = None
    method: Annotated[str, doc("In words.")]
    family: Annotated[str, doc("In words.")]


class Looks(Record, frozen=True, kw_only=True):
    """Looks of a run of --repeats auto, the one at which it stopped, and why."""

    looks: Annotated[
        tuple[int, ...], doc("Repeats after which verdicts may be decided, planned before the run.")
    ]
    repeats: Annotated[int, doc("At the last look that was taken; 0: none was.")]
    reason: Annotated[
        Literal["decided", "no-figure", "unlikely", "max-repeats", "budget"] | None,
        doc(
            "no-figure: what is not decided has no figure. unlikely: the repeats allowed would hardly decide "
            "it. null: still going on, or interrupted."
        ),
    ]
    blocks: Annotated[
        tuple[int, ...],
        doc("Of each start that was begun, of engines that are up together: what decides soonest."),
    ] = ()
    budget_s: Annotated[Number | None, doc("Seconds that were allowed.")]
    spent_s: Annotated[Number, doc("Seconds.")]


class Stopping(Looks, frozen=True, kw_only=True):
    """The same looks with the rule by which they share alpha."""

    rule: Annotated[Literal["group-sequential"], doc("How the looks share alpha.")]
    alpha_per_look: Annotated[float, doc("Level of one look.")]


class TestedLoad(Record, frozen=True, kw_only=True):
    """One load that a capacity search tried, over all its cells."""

    __test__ = False  # no test of pytest

    value: Annotated[Number, doc("Load.")]
    runs: Annotated[int, doc("Cells at it.")]
    kept: Annotated[int, doc("Cells that kept the limits.")]
    attainment: Annotated[float | None, doc("Good requests, 0 to 1.")]
    requests_per_s: Annotated[float | None, doc("Answers.")]
    saturated: Annotated[bool, doc("More load no longer meant more work done.")]
    why: Annotated[str | None, doc("What the first cell that failed failed by.")]


class Capacity(Record, frozen=True, kw_only=True):
    """Result of --find-capacity: the highest load at which one backend keeps the limits."""

    label: Annotated[str, doc("Backend as the run names it.")]
    kind: Annotated[Literal["rate", "concurrency"], doc("Of load.")]
    value: Annotated[
        Number | None, doc("Median of kept_by_search; null where the median search has no answer.")
    ] = None
    kept_by_search: Annotated[
        tuple[Number | None, ...] | None,
        doc("By search: highest load that kept the limits in a long probe; null: none did."),
    ] = None
    kept_short: Annotated[
        Number | None, doc("Highest load that kept the limits in a short probe of any search.")
    ] = None
    interval: Annotated[
        tuple[Number | None, Number | None, Number | None],
        doc("Lowest of the searches, value, lowest load above it that failed a long probe."),
    ]
    searches: Annotated[int, doc("How many.")]
    tested: Annotated[tuple[TestedLoad, ...], doc("Every load that was tried, ascending.")]
    saturated_from: Annotated[Number | None, doc("Lowest load of those that were saturated.")]


class Knee(Record, frozen=True, kw_only=True):
    """The working set at which a backend's hit rate falls below half of that at the smallest one."""

    label: Annotated[str, doc("Backend as the run names it.")]
    value: Annotated[
        float | None,
        doc("Working set over the engine's own KV cache; the median of the repeats; null: no fall."),
    ]
    interval: Annotated[
        tuple[float, float] | None,
        doc(
            "Measured points around it: the lowest and the highest of all repeats. Nothing is known between."
        ),
    ]
    repeats: Annotated[int, doc("With two points or more.")]
    crossed: Annotated[int, doc("Of these, those in which it fell so far.")]
    largest: Annotated[float | None, doc("Working set that was measured, over the KV cache.")]
    fits: Annotated[
        float | None, doc("Hit rate at the smallest working set, 0 to 1: half of it is looked for.")
    ]
    ideal: Annotated[float | None, doc("Hit rate of an unlimited cache, 0 to 1.")]
    unrelated: Annotated[
        float | None, doc("Highest hit rate where no prefix was used twice, 0 to 1; null: not measured.")
    ]


class Scaling(Record, frozen=True, kw_only=True):
    """Tokens/s, memory and queue of one backend against concurrency; medians of the repeats."""

    concurrency: Annotated[tuple[Number, ...], doc("Ascending; the other lists are in its order.")]
    output_tokens_per_s: Annotated[tuple[float | None, ...], doc("Inside the window.")]
    speedup: Annotated[tuple[float | None, ...], doc("Over the lowest load.")]
    speedup_base: Annotated[Number, doc("The lowest load.")]
    peak_gpu_memory_bytes: Annotated[tuple[float | None, ...], doc("The engine's, where it is known.")]
    peak_process_memory_bytes: Annotated[tuple[float | None, ...], doc("The engine's.")]
    running: Annotated[tuple[float | None, ...], doc("Requests, by the engine's gauge.")]
    waiting: Annotated[tuple[float | None, ...], doc("Requests, by the engine's gauge.")]
    in_flight_before_queueing: Annotated[Number | None, doc("Highest load without a queue.")]
