"""Capacities and the verdicts on them as sentences. Knows no output format."""

from collections.abc import Iterator

from msgspec.structs import replace

from harness.model import Capacity, CapacityPair, Summary
from harness.model.numbers import counted, short
from harness.report.wording import listing, plain
from harness.verdicts import capacity
from harness.verdicts.capacity_pairs import ratio_words
from harness.verdicts.capacity_users import sentence

MOST_PAIRS = 5  # verdicts that are spelled out; summary.json has all
MOST_SPELLED = 3  # answers that have lines of their own


def capacity_lines(summary: Summary) -> Iterator[str]:
    """The answer of each search for the highest load within the limits, then which backend carries more.

    Of many backends a ranking, and what the best one carries: the report has each answer with its reasons.
    """
    if len(summary.capacity or ()) > MOST_SPELLED:
        yield from map(plain, _ranked(summary))
        return
    for each in capacities(summary):
        yield from filter(None, each)
    yield from carries_more(summary)


def _ranked(summary: Summary) -> Iterator[str]:
    found = sorted(summary.capacity or (), key=lambda each: -(each.interval[1] or 0.0))
    answered = [each for each in found if capacity.is_answer(each)]
    if answered:
        unit = "requests/s" if answered[0].kind == "rate" else "users"
        briefs = ", ".join(f"{each.label} {capacity.brief(each)}" for each in answered)
        brackets = " (95% interval)" if any(each.interval[2] for each in answered) else ""
        yield f"capacity in {unit}{brackets}: {briefs}"
    others = [each for each in found if each not in answered]
    for each in others[:MOST_SPELLED]:
        yield f"capacity {capacity.words(each)}"
    if len(others) > MOST_SPELLED:
        yield f"{counted(len(others) - MOST_SPELLED, 'more backend')} without an answer: see the report"
    if answered and (meaning := _meaning(summary, answered[0])):
        yield meaning
    yield from _best_and_others(summary)


def _best_and_others(summary: Summary) -> Iterator[str]:
    """The verdicts of the backend that carries more than most, in a sentence for each kind of verdict."""
    best, shown = _leading(summary)
    if len(shown) <= MOST_PAIRS:
        yield from (verdict_words(pair, pair.a, pair.b) for pair in shown)
        return
    undecided = [pair for pair in shown if pair.verdict == "undecided"]
    why = "".join(f"; {why}" for why in dict.fromkeys(pair.why for pair in undecided) if why)
    if best is not None:
        behind = [pair for pair in shown if pair.verdict == "more" and pair.a == best]
        yield f"{best} carries more than {listing([f'{pair.b} ({_times(pair)})' for pair in behind])}"
    if undecided and best is not None:
        names = listing([pair.b if pair.a == best else pair.a for pair in undecided])
        yield f"undecided whether {best} carries more or less than {names}{why}"
    elif undecided:
        yield f"undecided which backend carries more, in {counted(len(undecided), 'pair')}{why}"
    refused = [pair for pair in shown if pair.verdict == "not comparable"]
    if refused:
        more = f"; so are {counted(len(refused) - 1, 'more pair')}" if refused[1:] else ""
        yield verdict_words(refused[0], refused[0].a, refused[0].b) + more


def _times(pair: CapacityPair) -> str:
    low, middle, _ = pair.ratio
    return f"{short(middle)} times" if middle else f"at least {short(low or 0.0)} times"


def capacities(summary: Summary) -> Iterator[tuple[str, str]]:
    """Each answer with its interval, and what it means for people; "" where nothing follows."""
    for result in summary.capacity or ():
        yield plain(f"capacity {capacity.words(result)}"), plain(_meaning(summary, result) or "")


def _meaning(summary: Summary, result: Capacity) -> str | None:
    mine = [cell for cell in summary.cells if cell.label == result.label]
    limits = next((cell.slo.limits for cell in mine if cell.slo is not None), ())
    priced = next((cell for cell in mine if cell.cost), mine[0])
    return sentence(result, limits, priced)


def carries_more(summary: Summary) -> Iterator[str]:
    """Yields every pair, or where one backend carries more than any other, its pairs alone."""
    _, shown = _leading(summary)
    for pair in shown[:MOST_PAIRS]:
        yield plain(verdict_words(pair, pair.a, pair.b))
    if len(shown) > MOST_PAIRS:
        yield f"{counted(len(shown) - MOST_PAIRS, 'more pair')} in summary.json"


def _leading(summary: Summary) -> tuple[str | None, list[CapacityPair]]:
    """The backend that carries more than most others and less than none, and its pairs; all pairs where none
    carries more.
    """
    forward = [_reversed(pair) if pair.verdict == "fewer" else pair for pair in summary.capacity_pairs]
    ahead = [pair.a for pair in forward if pair.verdict == "more"]
    behind = {pair.b for pair in forward if pair.verdict == "more"}
    values = {each.label: each.interval[1] or 0.0 for each in summary.capacity or ()}
    first = (label for label in ahead if label not in behind)
    best = max(first, key=lambda label: (ahead.count(label), values.get(label, 0.0)), default=None)
    return best, [pair for pair in forward if best is None or best in (pair.a, pair.b)]


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
