"""Decides which of two backends carries more load within the limits, by the intervals of their capacities."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from harness.conditions import unequal
from harness.model import Capacity, CapacityPair, CapacityVerdict, CellResult
from harness.model.grouping import grouped
from harness.model.metric_table import root_of
from harness.model.numbers import counted, quotient, short
from harness.validity.engine_changed import other_builds
from harness.verdicts.capacity import may_be_higher
from harness.verdicts.pairs import MOST_TOGETHER
from harness.verdicts.rules import DEFAULT_FLOOR

# How many requests a probe sends depends on how long the answers of its engine take.
_BY_SEARCH = "workload"
# Ratio of answers whose intervals may touch; docs/capacity.md has what that finds, and how often falsely.
FAR_APART = 1.5
LEAST_SEARCHES = 3  # of each, in a start each; one says nothing of how starts differ
_RATES = ("requests_per_s", "goodput_requests_per_s")


def capacity_pairs(found: Sequence[Capacity], cells: Sequence[CellResult]) -> tuple[CapacityPair, ...]:
    """The `capacity_pairs` list of summary.json; none of more backends than are compared."""
    if len(found) > MOST_TOGETHER:
        return ()
    by_label = grouped((cell.label, cell) for cell in cells)
    return tuple(
        capacity_pair(a, b, obstacle(by_label.get(a.label, ()), by_label.get(b.label, ())))
        for a, b in combinations(found, 2)
    )


def capacity_pair(a: Capacity, b: Capacity, refused: str | None) -> CapacityPair:
    """The verdict, whose error rates docs/capacity.md has. `refused`: a reason against the comparison.

    An end of the ratio is that of one interval over the other end of the other one, which is wider than an
    interval of the ratio: starts of one engine differ by more than the probes of a search show.
    """
    (a_low, a_value, a_high), (b_low, b_value, b_high) = _ends(a), _ends(b)
    middle = quotient(a_value, b_value)
    if middle and a.kind == b.kind == "concurrency":
        a_high, b_high = _not_touching(a_high, b_low, 1 / middle), _not_touching(b_high, a_low, middle)
    low, high = quotient(a_low, b_high), quotient(a_high, b_low)
    verdict: CapacityVerdict = "undecided"
    few = sorted(side.searches for side in (a, b) if side.searches < LEAST_SEARCHES)
    why = f"{_searches_words(few)}, {LEAST_SEARCHES} are needed" if few else ""
    if a.kind != b.kind:
        refused = f"one was searched by {a.kind}, the other by {b.kind}"
    if refused:
        verdict, why, low, high = "not comparable", refused, None, None
    elif not few and low is not None and low > 1 + DEFAULT_FLOOR:
        verdict = "more"
    elif not few and high is not None and high < 1 / (1 + DEFAULT_FLOOR):
        verdict = "fewer"
    elif not few and (a_value is None or b_value is None):
        why = "a search has no answer"
    ratio = (low, None if low is None or high is None else middle, high)
    return CapacityPair(a=a.label, b=b.label, verdict=verdict, ratio=ratio, why=why)


def _searches_words(few: Sequence[int]) -> str:
    """Names no side: the lines of both capacities have the searches of each."""
    if len({*few}) == 2:
        return f"{few[0]} and {counted(few[1], 'search')}"
    return f"{counted(few[0], 'search')} on {'each' if few[1:] else 'one'} side"


def _not_touching(high: float | None, other_low: float | None, ratio: float) -> float | None:
    """The high end of the lower of two whole capacities. It is the first load that is too much, so the low
    end of the other may be equal to it. Of answers that are close, as those of equal engines are, it stays.
    """
    return high - 1 if high is not None and high == other_low and high > 1 and ratio >= FAR_APART else high


def obstacle(a: Sequence[CellResult], b: Sequence[CellResult]) -> str | None:
    """A reason why the work was unequal, or why a side is no single engine. The labels have to differ."""
    return next(_obstacles(a, b), None)


def _obstacles(a: Sequence[CellResult], b: Sequence[CellResult]) -> Iterator[str]:
    yield from filter(None, (other_builds(side[0].label, side) for side in (a, b) if side))
    about = {*_RATES, *_limited((*a, *b))}
    for difference in unequal([*a, *b]):
        concerned = not difference.metrics or about.intersection(difference.metrics)
        if difference.matters and concerned and difference.code != _BY_SEARCH:
            yield difference.text


def _limited(cells: Iterable[CellResult]) -> Iterator[str]:
    """Yields the latencies that have a limit."""
    return (root_of(limit.metric) for cell in cells if cell.slo for limit in cell.slo.limits)


def _ends(found: Capacity) -> tuple[float | None, float | None, float | None]:
    if found.kept_by_search is None:  # of an earlier version: no long probe confirmed them
        return None, None, None
    low, value, high = found.interval
    return low, value, None if may_be_higher(found) else high


def ratio_words(pair: CapacityPair) -> str:
    """`1.61 times the load (1.45 to 1.78)`, or what is known of it."""
    low, middle, high = (end and short(end) for end in pair.ratio)
    if middle:
        return f"{middle} times the load ({low} to {high})"
    if not low and not high:
        return "the loads that were tried do not tell"
    return f"{f'at least {low}' if low else f'at most {high}'} times the load"
