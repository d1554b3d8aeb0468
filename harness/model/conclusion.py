"""What a run shows, as data: the only source of its claims on a terminal, in JSON and on a page."""

from typing import Annotated, Literal

from harness.model.comparison import Interval, Unequal
from harness.model.figures import Limit
from harness.model.load import LoadPoint
from harness.model.numbers import short
from harness.model.record import Record, doc
from harness.model.summary import Summary

PairState = Literal["separated", "same", "undecided", "not comparable"]


class Speedup(Record, frozen=True, kw_only=True):
    """How many times better `ahead` is than `behind`: more of a rate, less of a latency or a price."""

    ahead: Annotated[
        str, doc("Label of the better backend: by the verdict, or by the estimate where nothing was decided.")
    ]
    behind: Annotated[str, doc("Label of the other backend.")]
    state: Annotated[
        PairState, doc("State of the pair; separated: `ahead` is better. undecided: more repeats are needed.")
    ]
    times: Annotated[
        Interval | None,
        doc("Ratio by which `ahead` is better, geometric mean: low, estimate, high; null: no interval."),
    ]
    why: Annotated[str, doc("Figures and reason, in words.")]
    lacks: Annotated[str, doc("Reason why the pair is undecided, without figures; empty: it is not.")] = ""
    runs_needed: Annotated[
        int | None,
        doc("Runs of each backend needed to decide the pair; null: decided, or very many are needed."),
    ] = None
    left_out: Annotated[str, doc("Repeats that are no evidence for this metric, in words; empty: none.")] = ""
    in_doubt: Annotated[
        tuple[str, ...], doc("Labels of those of the two whose values of the metric are in doubt.")
    ] = ()

    @property
    def factor(self) -> str:
        """`2.44×`, or "" where no interval was found."""
        return f"{short(self.times.estimate)}×" if self.times else ""

    @property
    def span(self) -> str:
        """`2.44× (0.96 to 6.2)`, or "" where no interval was found."""
        return f"{self.factor} {self.between}" if self.times else ""

    @property
    def between(self) -> str:
        """`(0.96 to 6.2)`, or "" where no interval was found."""
        return f"({short(self.times.low)} to {short(self.times.high)})" if self.times else ""

    @property
    def leans(self) -> bool:
        """Whether the ratio, as it is shown, is on one side."""
        return self.factor not in ("", "1×")

    def leaning(self, ahead: str) -> str:
        """`vllm 2.44× (0.96 to 6.2)` of a pair that nothing separates; `no difference seen` if it is 1×.

        `ahead`: what its better backend is called.
        """
        if self.leans:
            return f"{ahead} {self.span}"
        return "no difference seen" + (f" {self.between}" if self.between != "(1 to 1)" else "")

    def other(self, label: str) -> str:
        """The label of the pair that is not `label`."""
        return self.behind if self.ahead == label else self.ahead


class Place(Record, frozen=True, kw_only=True):
    """Figure of one backend in the metric and at the load of an `Order`."""

    label: Annotated[str, doc("Label of the backend.")]
    median: Annotated[
        float | None,
        doc(
            "Median of the repeats that are not INVALID, in the metric's unit; in a comparison of runs their "
            "geometric mean. null: no figure."
        ),
    ]
    repeats: Annotated[int, doc("Repeats that have a figure and are not INVALID.")]
    doubt: Annotated[
        str, doc("Repeats whose value is in doubt, and the rules broken, in words; empty: none is.")
    ]


class Order(Record, frozen=True, kw_only=True):
    """The backends ordered by one metric at one load, and every pair of them."""

    load: Annotated[LoadPoint, doc("Load point at which all were measured.")]
    metric: Annotated[str, doc("Metric, by its dotted path in a cell.")]
    places: Annotated[tuple[Place, ...], doc("Backends by their medians, best first; without a figure last.")]
    groups: Annotated[
        tuple[tuple[str, ...], ...],
        doc("Labels, best first: every member of a group is separated from every member of the next."),
    ]
    pairs: Annotated[
        tuple[Speedup, ...], doc("Pairs of backends that were compared, each with its speed-up.")
    ]

    @property
    def best(self) -> Place | None:
        """The best median of backends comparable with another, or of all if none is; None without one."""
        known = [standing for standing in self.places if standing.median is not None]
        compared = (
            standing
            for standing in known
            if any(pair.state != "not comparable" for pair in self.about(standing.label))
        )
        return next(compared, known[0] if known else None)

    def about(self, label: str) -> tuple[Speedup, ...]:
        """Pairs that the backend is in."""
        return tuple(pair for pair in self.pairs if label in (pair.ahead, pair.behind))

    def beaten_by(self, label: str) -> tuple[Speedup, ...]:
        """Pairs that are separated, with the backend ahead."""
        return tuple(pair for pair in self.pairs if pair.state == "separated" and pair.ahead == label)

    def better_than(self, label: str) -> tuple[Speedup, ...]:
        """Pairs that are separated, with the backend behind."""
        return tuple(pair for pair in self.pairs if pair.state == "separated" and pair.behind == label)

    def others(self, label: str, state: str) -> list[str]:
        """Partners of the backend in pairs of this state."""
        return [pair.other(label) for pair in self.about(label) if pair.state == state]

    def beats_all(self, label: str) -> bool:
        """Whether the backend is separated from every other, and ahead."""
        return 0 < len(self.beaten_by(label)) == len(self.places) - 1


class UnderLoad(Record, frozen=True, kw_only=True):
    """One backend against the number of users; the lists are in the order of `users`."""

    label: Annotated[str, doc("Label of the backend.")]
    users: Annotated[tuple[int | float, ...], doc("Requests in flight, ascending.")]
    output_tokens_per_s: Annotated[
        tuple[float | None, ...], doc("Output tokens per second, median of the repeats; null: not known.")
    ]
    first_token_ms: Annotated[
        tuple[float | None, ...], doc("Median TTFT, ms, median of the repeats; null: not known.")
    ]
    limit_reached: Annotated[
        bool | None,
        doc(
            "Whether tokens/s stayed flat (less than 10% more) from some load on; false: they grew with the "
            "users to the last; null: the loads do not tell."
        ),
    ]
    limit_users: Annotated[
        int | float | None, doc("Fewest users after which tokens/s stayed flat; null: no limit is known.")
    ]
    in_doubt: Annotated[bool, doc("Whether some of these figures are in doubt.")]


class Good(Record, frozen=True, kw_only=True):
    """One backend against the limits of `[slo]`, at one load."""

    label: Annotated[str, doc("Label of the backend.")]
    requests_per_s: Annotated[
        float,
        doc("Goodput: answers per second, as `goodput_requests_per_s` of a cell; median of the repeats."),
    ]
    share: Annotated[
        float, doc("Share of good requests among the measured ones, 0 to 1; mean of the repeats.")
    ]


class Goodput(Record, frozen=True, kw_only=True):
    """Goodput of the backends at one load. These are medians: there is no verdict on a difference."""

    load: Annotated[LoadPoint, doc("Load point at which all were measured.")]
    limits: Annotated[
        tuple[Limit, ...],
        doc("Limits of [slo], each with the share inside it in the first backend's first usable repeat."),
    ]
    places: Annotated[tuple[Good, ...], doc("Backends by goodput, most first; without a figure left out.")]


class Warned(Record, frozen=True, kw_only=True):
    """Something that makes figures doubtful, or that is missing."""

    text: Annotated[str, doc("Warning, in a few words.")]
    hint: Annotated[str, doc("Advice on what to do; empty: nothing is known.")]


class NextStep(Record, frozen=True, kw_only=True):
    """A suggestion of what to run next."""

    why: Annotated[str, doc("Reason for the step: what this run leaves open.")]
    do: Annotated[
        str,
        doc(
            "Command to run, which begins with `bench`; or advice, or what to add to the command of this run."
        ),
    ]
    is_command: Annotated[bool, doc("Whether that is a command for a shell.")] = False
    expected_s: Annotated[
        float | None, doc("Expected time of the command, s; null: no command, or nothing to judge by.")
    ] = None
    least_s: Annotated[
        float | None, doc("Least time of the command, s: --repeats auto may end after its first look.")
    ] = None
    longest: Annotated[bool, doc("Whether that is its longest time: --repeats auto may end earlier.")] = False


class Conclusion(Record, frozen=True, kw_only=True):
    """What a run shows, and what it leaves open."""

    orders: Annotated[
        tuple[Order, ...],
        doc("Orders of the backends by load and metric; at each load the primary metric first."),
    ]
    under_load: Annotated[tuple[UnderLoad, ...], doc("Course of each backend over the closed-loop loads.")]
    undecided: Annotated[int, doc("Pairs, counted at each load, that the primary metric leaves undecided.")]
    unequal: Annotated[tuple[Unequal, ...], doc("Conditions that differ and refuse or weaken a verdict.")]
    caveats: Annotated[dict[str, str], doc("Caveats by label of the backend: what its figures do not show.")]
    goodput: Annotated[tuple[Goodput, ...], doc("Goodput of the backends by load; empty: no limits.")]
    warnings: Annotated[
        tuple[Warned, ...], doc("Warnings; those that change the meaning of most figures first.")
    ]
    next_steps: Annotated[tuple[NextStep, ...], doc("Steps to take next, most important first.")]


class ComparedConclusion(Record, frozen=True, kw_only=True):
    """What a comparison of runs shows."""

    sentence: Annotated[
        str, doc("Sentence that says what became slower, or that nothing did, or why that is not known.")
    ]
    orders: Annotated[
        tuple[Order, ...],
        doc("Orders of two backends by pair, load and metric; without doubts of single repeats."),
    ]


class Concluded(Summary, frozen=True, kw_only=True):
    """summary.json with the conclusion drawn from it."""

    conclusion: Annotated[Conclusion, doc("Conclusion: what the figures show, and what they leave open.")]
