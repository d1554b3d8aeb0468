"""Capacities and the verdicts on them as sentences. Knows no output format."""

from collections.abc import Iterator

from msgspec.structs import replace

from harness.model import CapacityPair, Summary
from harness.model.numbers import counted
from harness.report.wording import plain
from harness.verdicts import capacity
from harness.verdicts.capacity_pairs import ratio_words

MOST_PAIRS = 5  # verdicts that are spelled out; summary.json has all


def capacity_lines(summary: Summary) -> Iterator[str]:
    """The answer of each search for the highest load within the limits, then which backend carries more."""
    for each in capacities(summary):
        yield from filter(None, each)
    yield from carries_more(summary)


def capacities(summary: Summary) -> Iterator[tuple[str, str]]:
    """Each answer with its interval, and what it means for people; "" where nothing follows."""
    for result in summary.capacity or ():
        mine = [cell for cell in summary.cells if cell.label == result.label]
        limits = next((cell.slo.limits for cell in mine if cell.slo is not None), ())
        priced = next((cell for cell in mine if cell.cost), mine[0])
        meaning = capacity.sentence(result, limits, priced)
        yield plain(f"capacity {capacity.words(result)}"), plain(meaning or "")


def carries_more(summary: Summary) -> Iterator[str]:
    """Yields every pair, or where one backend carries more than any other, its pairs alone."""
    forward = [_reversed(pair) if pair.verdict == "fewer" else pair for pair in summary.capacity_pairs]
    ahead = [pair.a for pair in forward if pair.verdict == "more"]
    best = max(ahead, key=ahead.count, default=None)
    shown = [pair for pair in forward if best is None or best in (pair.a, pair.b)]
    for pair in shown[:MOST_PAIRS]:
        yield plain(verdict_words(pair, pair.a, pair.b))
    if len(shown) > MOST_PAIRS:
        yield f"{counted(len(shown) - MOST_PAIRS, 'more pair')} in summary.json"


def _reversed(pair: CapacityPair) -> CapacityPair:
    low, middle, high = (end and 1 / end for end in pair.ratio)
    return replace(pair, a=pair.b, b=pair.a, verdict="more", ratio=(high, middle, low))


def verdict_words(pair: CapacityPair, name: str, than: str) -> str:
    """`vllm carries more than sglang: 1.61 times the load (1.45 to 1.78)`, with the names to show."""
    if pair.verdict == "not comparable":
        return f"the capacities of {name} and {than} are not comparable: {pair.why}"
    times = ratio_words(pair)
    if pair.verdict == "undecided":
        needs = f"; {pair.why}" if pair.why else ""
        return f"undecided whether {name} carries more or less than {than}: {times}{needs}"
    return f"{name} carries {'more' if pair.verdict == 'more' else 'less'} than {than}: {times}"
