"""Parts of summary.json about several cells: verdicts, rank lines, estimates, noise, capacity."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from harness.model.choices import Pairing
from harness.model.load import LoadPoint
from harness.model.metric import Better
from harness.model.record import Record, doc

Number = int | float
ComparisonVerdict = Literal["faster", "slower", "same", "not enough runs", "not comparable"]
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

    within: Annotated[float, doc("Standard deviation of the log ratio between blocks of one start.")]
    between: Annotated[
        float, doc("Standard deviation of the log ratio between starts, apart from that of their blocks.")
    ]
    blocks: Annotated[
        int | None,
        doc("Blocks of each start that decide soonest; null: the starts allowed would not decide."),
    ]
    starts: Annotated[
        int | None, doc("Starts that decide soonest; null: as many as are allowed would not decide.")
    ]
    seconds: Annotated[
        float | None, doc("Time that these blocks and starts would take, s; null: there are none.")
    ]


class PairVerdict(Record, frozen=True, kw_only=True):
    """Verdict about `a` against `b` at one load in one metric; ratios and differences are a over b and a
    minus b.
    """

    a: Annotated[str, doc("Label of the backend that the verdict is about.")]
    b: Annotated[str, doc("Label of the backend that a is compared with.")]
    load: Annotated[LoadPoint, doc("Load point at which both were measured.")]
    metric: Annotated[str, doc("Metric, by its dotted path in a cell.")]
    better: Annotated[Better, doc("Direction of better values of the metric: lower or higher.")]
    ratio: Annotated[Interval | None, doc("Ratio a / b: low, estimate, high; null: not computed.")] = None
    family_ratio: Annotated[
        Interval | None,
        doc("Ratio a / b at the level that the family allows this comparison; null: not tested."),
    ] = None
    difference: Annotated[
        Interval | None,
        doc("Difference a - b in the metric's unit: low, estimate, high; null: not computed."),
    ] = None
    runs: Annotated[
        tuple[int, int], doc("Runs of a and of b with a figure; starts, where an interval is over starts.")
    ]
    measured: Annotated[
        tuple[int, int],
        doc("Runs of a and of b that were measured, INVALID ones included, also after the verdict."),
    ] = (0, 0)
    failed: Annotated[
        tuple[int, int],
        doc("Runs of a and of b without a figure because the engine failed, also after the verdict."),
    ] = (0, 0)
    left_out: Annotated[
        tuple[dict[str, int], dict[str, int]],
        doc("Runs of a and of b that are no evidence, by reason; the verdict holds with them too."),
    ] = ({}, {})
    paired: Annotated[
        bool, doc("Whether each run of a was compared with the run of b of the same requests.")
    ] = False
    method: Annotated[
        Method, doc("Data of the interval: runs, a number per run; pooled, the requests of all runs.")
    ] = "runs"
    verdict: Annotated[ComparisonVerdict, doc("Verdict about a, as docs/verdicts.md defines it.")]
    why: Annotated[str, doc("Reason for the verdict, in words.")]
    lacks: Annotated[str, doc("Reason why there are not enough runs, without figures; empty: a verdict.")] = (
        ""
    )
    runs_needed: Annotated[
        int | None,
        doc("Runs of each that would give a verdict; null: there is one, or very many are needed."),
    ] = None
    levels: Annotated[
        Levels | None,
        doc("Spread by blocks and starts, of engines up together, in the primary metric; null: elsewhere."),
    ] = None
    primary: Annotated[bool, doc("Whether the metric is the one that decides.")] = False
    p_holm: Annotated[
        float | None, doc("Holm-adjusted p of the hypothesis: difference within the floor; null: not tested.")
    ] = None
    p_same_holm: Annotated[
        float | None,
        doc("Holm-adjusted p of the hypothesis: difference beyond the margin of same; null: not tested."),
    ] = None
    smallest_detectable: Annotated[
        float | None,
        doc("Smallest relative effect that as many runs find in 4 of 5 experiments; null: not known."),
    ] = None
    chance: Annotated[
        float | None,
        doc("Chance that the last look planned gives a verdict, 0 to 1; null: verdict, or no later look."),
    ] = None

    @property
    def tested(self) -> bool:
        """Whether there were enough runs for an interval, or runs that failed."""
        return self.ratio is not None or any(self.failed)


class Estimate(Record, frozen=True, kw_only=True):
    """One metric of one backend at one load, estimated over the repeats."""

    label: Annotated[str, doc("Label of the backend.")]
    load: Annotated[LoadPoint, doc("Load point at which it was measured.")]
    metric: Annotated[str, doc("Metric, by its dotted path in a cell.")]
    interval: Annotated[
        tuple[float | None, float, float | None],
        doc("Estimate over the repeats: low, estimate, high at 95%; null ends: a single run."),
    ]
    runs: Annotated[int, doc("Runs, or starts, that have a figure.")]
    method: Annotated[
        Method, doc("Data of the interval: runs, a number per run; pooled, the requests of all runs.")
    ]

    @property
    def whole(self) -> tuple[float, float, float] | None:
        """The interval; None if one of its ends is not known."""
        low, middle, high = self.interval
        return None if low is None or high is None else (low, middle, high)


class Ranking(Record, frozen=True, kw_only=True):
    """The rank line of one metric at one load."""

    load: Annotated[LoadPoint, doc("Load point at which all were measured.")]
    metric: Annotated[str, doc("Metric, by its dotted path in a cell.")]
    line: Annotated[str, doc("Rank line of the backends; docs/verdicts.md has the signs.")]
    primary: Annotated[bool, doc("Whether the metric is the one that decides.")]
    groups: Annotated[
        tuple[tuple[str, ...], ...], doc("Labels, best first; inside a group nothing is shown to be better.")
    ]
    weights: Annotated[
        dict[str, str] | None, doc("Weights by label of the backend; null: all serve the same, or not known.")
    ] = None


class Noise(Record, frozen=True, kw_only=True):
    """Difference between a backend and itself, as --aa measured it."""

    backend: Annotated[str, doc("Name of the backend, without #a and #b.")]
    load: Annotated[LoadPoint, doc("Load point at which it was measured.")]
    metric: Annotated[str, doc("Metric, by its dotted path in a cell.")]
    ratio: Annotated[Interval, doc("Ratio of #a to #b: low, estimate, high.")]
    difference: Annotated[float, doc("Size of the difference that was found, as a share.")]
    difference_upper: Annotated[float, doc("Farther end of the interval of the difference, as a share.")]
    smallest_detectable: Annotated[
        float | None,
        doc("Smallest relative effect that as many runs find in 4 of 5 experiments; null: not known."),
    ]
    verdict: Annotated[ComparisonVerdict, doc("Verdict about #a, as docs/verdicts.md defines it.")]


class Unequal(Record, frozen=True):
    """A condition that differs between backends."""

    code: Annotated[str, doc("Code of the condition, of the table of conditions.")]
    labels: Annotated[tuple[str, ...], doc("Labels of the backends that it is about.")]
    text: Annotated[str, doc("Condition with its values, in words.")]
    matters: Annotated[bool, doc("Whether a verdict would be about this, not about the engines.")]
    metrics: Annotated[tuple[str, ...], doc("Metrics that the condition affects; empty: all.")] = ()
    apart: Annotated[
        float,
        doc("Share by which the condition may move a ratio of these metrics; a verdict's floor grows by it."),
    ] = 0.0
    what: Annotated[str, doc("Condition in few words; empty: only its code is known.")] = ""


class VerdictRules(Record, frozen=True, kw_only=True):
    """Settings that the verdicts were found with: metrics, levels, floors and looks."""

    primary: Annotated[str, doc("Metric that decides, by its dotted path in a cell.")]
    metrics: Annotated[tuple[str, ...], doc("Metrics that verdicts are about, the primary one first.")]
    alpha: Annotated[float, doc("Significance level of each family of tests.")]
    min_runs: Annotated[int, doc("Fewest runs that a verdict needs.")]
    floor: Annotated[float, doc("Smallest relative difference that counts, as a share.")]
    measured_floors: Annotated[
        dict[str, dict[str, dict[str, float]]],
        doc("Floors that --aa measured, as shares, by backend, load and metric."),
    ]
    same_within: Annotated[float, doc("Margin of the verdict same, as a share.")]
    large_difference: Annotated[float, doc("Share beyond which a rank line says >>.")]
    separate_sessions: Annotated[bool, doc("Whether the two were measured in different sessions.")]
    forced: Annotated[bool, doc("Whether unequal conditions are overlooked.")]
    looks: Annotated[
        tuple[int, ...], doc("Repeats after which verdicts may be decided; empty: after all.")
    ] = ()
    last_look: Annotated[int, doc("Repeats at the last look that was taken; 0: none was.")] = 0
    between_repeats: Annotated[
        dict[str, str], doc("Treatment of the engine between repeats, by label: restart, reset or keep.")
    ] = msgspec.field(default_factory=dict)
    pairing: Annotated[
        Pairing,
        doc("Pairing of engines: starts (one up at a time), blocks (all up, in turns) or duet (at once)."),
    ] = "starts"
    blocks: Annotated[int, doc("Repeats of one start; an interval over starts takes their mean.")] = 1
    confidence: Annotated[float, doc("Confidence level of the intervals next to the verdicts, 0 to 1.")]
    look_alpha: Annotated[float | None, doc("Significance level of one look; null: not kept.")] = None
    unit: Annotated[str | None, doc("Unit that an interval is over, such as starts; null: not kept.")] = None
    method: Annotated[str, doc("Statistical method, in words.")]
    family: Annotated[str, doc("Families of tests, in words.")]


class Looks(Record, frozen=True, kw_only=True):
    """Looks of a run of --repeats auto, the one at which it stopped, and why."""

    looks: Annotated[
        tuple[int, ...], doc("Repeats after which verdicts may be decided, planned before the run.")
    ]
    repeats: Annotated[int, doc("Repeats at the last look that was taken; 0: none was.")]
    reason: Annotated[
        Literal["decided", "no-figure", "unlikely", "max-repeats", "budget"] | None,
        doc("Reason why the run ended (docs/verdict-rules.md); null: still going on, or interrupted."),
    ]
    blocks: Annotated[
        tuple[int, ...], doc("Blocks of each start that was begun; empty: engines were not up together.")
    ] = ()
    budget_s: Annotated[Number | None, doc("Time that the run was allowed, s; null: no limit.")]
    spent_s: Annotated[Number, doc("Time that the run has taken so far, s.")]


class Stopping(Looks, frozen=True, kw_only=True):
    """The same looks with the rule by which they share alpha."""

    rule: Annotated[Literal["group-sequential"], doc("Rule by which the looks share alpha.")]
    alpha_per_look: Annotated[float, doc("Significance level of one look.")]


class TestedLoad(Record, frozen=True, kw_only=True):
    """One load that a capacity search tried, over all its cells."""

    __test__ = False  # no test of pytest

    value: Annotated[Number, doc("Load that was tried: requests per second, or in flight.")]
    runs: Annotated[int, doc("Cells that were measured at this load.")]
    kept: Annotated[int, doc("Cells that kept the limits.")]
    attainment: Annotated[
        float | None, doc("Share of good requests, 0 to 1, mean of the cells; null: not known.")
    ]
    requests_per_s: Annotated[float | None, doc("Answers per second, mean of the cells; null: no answers.")]
    saturated: Annotated[bool, doc("Whether more load no longer meant more work done.")]
    why: Annotated[str | None, doc("Reason why a cell failed, or the sign of saturation; null: neither.")]
    spoiled: Annotated[bool, doc("Whether client, machine or other traffic is the reason.")] = False
    disturbed: Annotated[
        int, doc("Long probes that count in `runs` alone: measured again, most at this load did far better.")
    ] = 0


class Capacity(Record, frozen=True, kw_only=True):
    """Result of --find-capacity: the highest load at which one backend keeps the limits."""

    label: Annotated[str, doc("Label of the backend.")]
    kind: Annotated[
        Literal["rate", "concurrency"],
        doc("Kind of load: rate (requests per second) or concurrency (requests in flight)."),
    ]
    value: Annotated[
        Number | None,
        doc("Capacity: kept with 90% probability, in an open loop with a reserve; null: none was found."),
    ] = None
    kept_by_search: Annotated[
        tuple[Number | None, ...] | None,
        doc("Highest load that kept the limits in a long probe, by start; null: none did."),
    ] = None
    kept_short: Annotated[
        Number | None, doc("Highest load that kept the limits in any short probe; null: none did.")
    ] = None
    interval: Annotated[
        tuple[Number | None, Number | None, Number | None],
        doc("95% interval, the low end with the reserve of `value`, `value` between them; null: not known."),
    ]
    searches: Annotated[int, doc("Starts of the engine with a probe.")]
    slow_starts: Annotated[
        tuple[int, ...],
        doc("Starts, from 0, that carried less than the others in two probes: the interval spans them."),
    ] = ()
    tested: Annotated[tuple[TestedLoad, ...], doc("Loads that were tried, ascending.")]
    highest: Annotated[
        Number | None, doc("Highest load that the search was asked about; null: an earlier version.")
    ] = None
    saturated_from: Annotated[
        Number | None, doc("Lowest load at which the server was saturated; null: none.")
    ]


CapacityVerdict = Literal["more", "fewer", "undecided", "not comparable"]


class CapacityPair(Record, frozen=True, kw_only=True):
    """Verdict on the capacities of two backends."""

    a: Annotated[str, doc("Label of one backend.")]
    b: Annotated[str, doc("Label of the other.")]
    verdict: Annotated[CapacityVerdict, doc("Whether `a` carries more or fewer within the limits than `b`.")]
    ratio: Annotated[
        tuple[float | None, float | None, float | None],
        doc("Low end, value and high end of the capacity of `a` over that of `b`; null: not known."),
    ]
    why: Annotated[str, doc("Reason why there is no verdict, in words; empty: their intervals decide.")]


class Knee(Record, frozen=True, kw_only=True):
    """The working set at which a backend's hit rate falls below half of that at the smallest one."""

    label: Annotated[str, doc("Label of the backend.")]
    value: Annotated[
        float | None,
        doc("Working set at the knee, in multiples of the KV cache, median of the repeats; null: no fall."),
    ]
    interval: Annotated[
        tuple[float, float] | None,
        doc("Measured working sets below and above the knee, in all repeats, as `value`; null: no fall."),
    ]
    repeats: Annotated[int, doc("Repeats with two measured points or more.")]
    crossed: Annotated[int, doc("Repeats in which the hit rate fell below half.")]
    largest: Annotated[
        float | None, doc("Largest measured working set, in multiples of the KV cache; null: too few points.")
    ]
    fits: Annotated[
        float | None,
        doc("Hit rate at the smallest working set, 0 to 1, median of the repeats; null: too few points."),
    ]
    ideal: Annotated[
        float | None, doc("Highest hit rate that an unlimited cache would have, 0 to 1; null: not known.")
    ]
    unrelated: Annotated[
        float | None, doc("Highest hit rate where no prefix was used twice, 0 to 1; null: not measured.")
    ]


class Scaling(Record, frozen=True, kw_only=True):
    """Tokens/s, memory and queue of one backend against concurrency; medians of the repeats."""

    concurrency: Annotated[
        tuple[Number, ...], doc("Requests in flight, ascending; the other lists are in its order.")
    ]
    output_tokens_per_s: Annotated[
        tuple[float | None, ...],
        doc("Output tokens per second in the window, median of the repeats; null: not known."),
    ]
    speedup: Annotated[
        tuple[float | None, ...],
        doc("Ratio of `output_tokens_per_s` to that at the lowest load; null: not known."),
    ]
    speedup_base: Annotated[Number, doc("Lowest load, which `speedup` is relative to.")]
    peak_gpu_memory_bytes: Annotated[
        tuple[float | None, ...],
        doc("Peak GPU memory of the engine, or of all users if not separable; null: not known."),
    ]
    peak_process_memory_bytes: Annotated[
        tuple[float | None, ...], doc("Peak resident memory of the engine's processes; null: not known.")
    ]
    running: Annotated[
        tuple[float | None, ...], doc("Mean requests at work, by the engine's gauge; null: not known.")
    ]
    waiting: Annotated[
        tuple[float | None, ...], doc("Mean requests queued, by the engine's gauge; null: not known.")
    ]
    in_flight_before_queueing: Annotated[
        Number | None, doc("Highest load without a queue; null: none, or not known.")
    ]
