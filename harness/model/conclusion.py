"""What a run shows, as data: the only source of its claims on a terminal, in JSON and on a page."""

from typing import Annotated, Literal

from harness.model.comparison import Interval, Unequal
from harness.model.figures import Limit
from harness.model.load import LoadPoint
from harness.model.record import Record, doc
from harness.model.summary import Summary

PairState = Literal["separated", "same", "undecided", "not comparable"]


class Speedup(Record, frozen=True, kw_only=True):
    """How many times better `ahead` is than `behind`: more of a rate, less of a latency or a price."""

    ahead: Annotated[
        str, doc("Label of the better backend: by the verdict, or by the estimate where nothing was decided.")
    ]
    behind: Annotated[str, doc("Label of the other backend.")]
    state: Annotated[PairState, doc("separated: `ahead` is better. undecided: more repeats are needed.")]
    times: Annotated[
        Interval | None,
        doc("Low, estimate, high, of the geometric means of the repeats; null: no interval was found."),
    ]
    why: Annotated[str, doc("Figures and reason, for people.")]
    lacks: Annotated[str, doc("Why it is undecided, without figures; empty: it is not.")] = ""
    runs_needed: Annotated[
        int | None, doc("Of each backend, that would decide an undecided pair; null: more would hardly.")
    ] = None
    left_out: Annotated[str, doc("Repeats that are no evidence for this metric; empty: none.")] = ""
    in_doubt: Annotated[tuple[str, ...], doc("Those of both with repeats that are not VALID.")] = ()

    @property
    def factor(self) -> str:
        """`2.44×`, or "" where no interval was found."""
        return f"{self.times.estimate:.3g}×" if self.times else ""

    @property
    def span(self) -> str:
        """`2.44× (0.96 to 6.2)`, or "" where no interval was found."""
        return f"{self.factor} {self.between}" if self.times else ""

    @property
    def between(self) -> str:
        """`(0.96 to 6.2)`, or "" where no interval was found."""
        return f"({self.times.low:.3g} to {self.times.high:.3g})" if self.times else ""

    def other(self, label: str) -> str:
        """The label of the pair that is not `label`."""
        return self.behind if self.ahead == label else self.ahead


class Place(Record, frozen=True, kw_only=True):
    """Median of one backend in the metric and at the load of an `Order`."""

    label: Annotated[str, doc("Backend as the run names it.")]
    median: Annotated[float | None, doc("Over the repeats that are not INVALID, in the metric's unit.")]
    repeats: Annotated[int, doc("With a figure.")]
    doubt: Annotated[str, doc("Which of its repeats are not VALID, and by which rules; empty: all are.")]


class Order(Record, frozen=True, kw_only=True):
    """The backends ordered by one metric at one load, and every pair of them."""

    load: Annotated[LoadPoint, doc("Where all were measured.")]
    metric: Annotated[str, doc("Dotted path in a cell.")]
    places: Annotated[tuple[Place, ...], doc("By their medians, best first; without a figure last.")]
    groups: Annotated[
        tuple[tuple[str, ...], ...],
        doc("Labels, best first: every member of a group is separated from every member of the next."),
    ]
    pairs: Annotated[tuple[Speedup, ...], doc("Every pair that was compared.")]

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


class UnderLoad(Record, frozen=True, kw_only=True):
    """One backend against the number of users; the lists are in the order of `users`."""

    label: Annotated[str, doc("Backend as the run names it.")]
    users: Annotated[tuple[int | float, ...], doc("Requests in flight, ascending.")]
    output_tokens_per_s: Annotated[tuple[float | None, ...], doc("Median of the repeats.")]
    first_token_ms: Annotated[tuple[float | None, ...], doc("Median TTFT, median of the repeats.")]
    limit_reached: Annotated[
        bool | None, doc("The last step brought less than 10 % more; null: fewer than two loads are known.")
    ]
    in_doubt: Annotated[bool, doc("Some of these repeats are not VALID.")]


class Good(Record, frozen=True, kw_only=True):
    """One backend against the limits of `[slo]`, at one load."""

    label: Annotated[str, doc("Backend as the run names it.")]
    requests_per_s: Annotated[float, doc("Goodput: answers inside every limit; median of the repeats.")]
    share: Annotated[float, doc("Of the measured requests, 0 to 1; median of the repeats.")]


class Goodput(Record, frozen=True, kw_only=True):
    """Goodput of the backends at one load. These are medians: there is no verdict on a difference."""

    load: Annotated[LoadPoint, doc("Where all were measured.")]
    limits: Annotated[tuple[Limit, ...], doc("Of [slo], with what the first backend kept them by.")]
    places: Annotated[tuple[Good, ...], doc("Most first; without a figure left out.")]


class Warned(Record, frozen=True, kw_only=True):
    """Something that makes figures doubtful, or that is missing."""

    text: Annotated[str, doc("In words.")]
    hint: Annotated[str, doc("What to do; empty: nothing is known.")]


class NextStep(Record, frozen=True, kw_only=True):
    """A suggestion of what to run next."""

    why: Annotated[str, doc("What this run leaves open.")]
    do: Annotated[str, doc("The command, or what to add to the command of this run.")]


class Conclusion(Record, frozen=True, kw_only=True):
    """What a run shows, and what it leaves open."""

    orders: Annotated[tuple[Order, ...], doc("Per load and metric; at each load the primary metric first.")]
    under_load: Annotated[tuple[UnderLoad, ...], doc("Per backend, over closed-loop loads.")]
    undecided: Annotated[int, doc("Pairs of the primary metric that more repeats might decide.")]
    unequal: Annotated[tuple[Unequal, ...], doc("Conditions that differ and refuse or weaken a verdict.")]
    caveats: Annotated[dict[str, str], doc("By label of a backend: what its figures do not show.")]
    goodput: Annotated[tuple[Goodput, ...], doc("Per load; empty without limits.")]
    warnings: Annotated[tuple[Warned, ...], doc("What changes the meaning of most figures first.")]
    next_steps: Annotated[tuple[NextStep, ...], doc("Most important first.")]


class ComparedConclusion(Record, frozen=True, kw_only=True):
    """What a comparison of runs shows."""

    sentence: Annotated[str, doc("What became slower, or that nothing did, or why that is not known.")]
    orders: Annotated[
        tuple[Order, ...],
        doc("Per pair, load and metric, each of two backends; no doubts of single repeats."),
    ]


class Concluded(Summary, frozen=True, kw_only=True):
    """summary.json with the conclusion drawn from it."""

    conclusion: Annotated[Conclusion, doc("What the figures show, and what they leave open.")]
