"""Verdicts at equal speed per user as sentences. Knows no output format."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from harness.model import ComparedPair, Interval, Summary
from harness.model.grouping import grouped
from harness.model.numbers import counted, number, short
from harness.model.per_user import SpeedLevel, SpeedPair, SpeedVerdict
from harness.report.wording import listing, plain
from harness.verdicts.per_user import asked_speeds, chosen
from harness.verdicts.speed_curves import KINDS, RATE, TPOT, Curve, curves

MOST_PAIRS = 3  # of a speed that are spelled out, and backends; summary.json has all


def per_user_lines(summary: Summary) -> Iterator[str]:
    """A line per speed that was chosen: the pairs of the backend that carries most, who never reaches it, and
    whose figures are in doubt.

    Pairs with too few repeats for an interval have none: the run says so as a whole.
    """
    if not asked_speeds(summary.cells):
        for level in summary.per_user:
            yield from _line(summary, level, [])


def asked_speed_lines(summary: Summary) -> Iterator[str]:
    """The same for the speeds that were asked for, which begins with what each backend carries."""
    if asked_speeds(summary.cells):
        for level in summary.per_user:
            yield from _line(summary, level, _carried(level))


def _line(summary: Summary, level: SpeedLevel, first: list[str]) -> Iterator[str]:
    pairs = (pair_words(pair, _amount(level)) for pair in _ordered(level)[:MOST_PAIRS])
    parts = [*first, *pairs, *_more(level), *_never(level)]
    if parts:
        yield plain(f"at {speed_words(level)}: {'; '.join([*parts, *_doubts(summary, level)])}", 900)


def _carried(level: SpeedLevel) -> list[str]:
    """`vllm 386 and sglang 255 output tokens/s`, and who is faster at every load."""
    known = [(figure.tokens_per_s, figure.label) for figure in level.figures if figure.tokens_per_s]
    most = sorted(known, key=lambda entry: -entry[0])[:MOST_PAIRS]
    words = listing([f"{label} {number(rate)}" for rate, label in most])
    parts = [f"{words} {_amount(level)}"] if most else []
    if faster := [figure.label for figure in level.figures if figure.reach == "faster at every load"]:
        parts.append(f"{listing(faster)} {'is' if len(faster) == 1 else 'are'} faster at every load")
    return parts


def _doubts(summary: Summary, level: SpeedLevel) -> Iterator[str]:
    """`in doubt: vllm and sglang (contended)`: rules broken at the loads that a figure is read between."""
    codes = {}
    for figure in level.figures:
        cells = [cell for cell in summary.cells if cell.label == figure.label and cell.point in figure.loads]
        reasons = [
            reason.code
            for cell in cells
            if not cell.invalid
            for reason in cell.validity.about([TPOT, RATE]).reasons
        ]
        if reasons:
            codes[figure.label] = ", ".join(dict.fromkeys(reasons))
    alike = grouped((words, label) for label, words in codes.items())
    if alike:
        each = [f"{_who(names, level)} ({words})" for words, names in alike.items()]
        yield f"in doubt: {listing(each)}"


def _who(names: list[str], level: SpeedLevel) -> str:
    if len(names) <= MOST_PAIRS:
        return listing(names)
    return (
        f"all {len(names)} backends" if len(names) == len(level.figures) else counted(len(names), "backend")
    )


def _amount(level: SpeedLevel) -> str:
    return f"output tokens/s{' per GPU' if level.per == 'GPU' else ''}"


def no_shared_speed(summary: Summary) -> Iterator[str]:
    """A line for each kind of load whose curves have no speed to choose, with the range of each."""
    for kind in () if summary.capacity or asked_speeds(summary.cells) else KINDS:
        found = sorted(curves(summary.cells, kind), key=lambda curve: curve.range)
        if why := why_no_speed(found):
            each = [f"{curve.label} {' to '.join(map(short, curve.range))}" for curve in found]
            more = [f"{len(found) - MOST_PAIRS} more"] if len(found) > MOST_PAIRS else []
            yield plain(f"{why}, in tokens/s: {listing([*each[:MOST_PAIRS], *more])}")


def why_no_speed(found: Sequence[Curve]) -> str:
    """A clause if several curves have no speed at which to compare them; else ""."""
    if len(found) < 2 or chosen(found):
        return ""
    ranges = sorted(curve.range for curve in found)
    if all(high < low for (_, high), (low, _) in pairwise(ranges)):
        return "no two backends are equally fast per user at these loads"
    return "the speeds per user that backends share are too near to each other to choose from"


def compared_speeds(pair: ComparedPair, new: str, than: str) -> Iterator[tuple[SpeedVerdict, str]]:
    """Each verdict with the speeds that have it: `At equal speed per user vllm carries more output tokens/s
    than in the run of 2026-11-22: 1.21 times at 40 tokens/s (1.15 to 1.28)`.

    Speeds with too few runs have none: the verdicts at each load say so.
    """
    decided = ((each.verdict, (level, each)) for level in pair.per_user for each in level.pairs if each.ratio)
    for verdict, mine in grouped(decided).items():
        speeds = listing([_at_speed(level, each) for level, each in mine])
        why = "".join(f"; {why}" for why in dict.fromkeys(each.why for _, each in mine) if why)
        how = {"undecided": "more or fewer", "same": "the same"}.get(verdict, verdict)
        carries = f"{new} carries {how} {_amount(mine[0][0])} {'as' if verdict == 'same' else 'than'} {than}"
        whether = "Undecided whether at" if verdict == "undecided" else "At"
        yield verdict, f"{whether} equal speed per user {carries}: {speeds}{why}"


def _at_speed(level: SpeedLevel, pair: SpeedPair) -> str:
    """`1.21 times at 40 tokens/s (1.15 to 1.28)`."""
    assert pair.ratio is not None
    low, times, high = map(short, pair.ratio)
    return f"{times} times at {short(level.tokens_per_s_per_user)} tokens/s ({low} to {high})"


def speed_words(level: SpeedLevel) -> str:
    return f"{short(level.tokens_per_s_per_user)} tokens/s per user"


def pair_words(pair: SpeedPair, amount: str) -> str:
    """`vllm carries 1.42 times the output tokens/s of sglang (1.31 to 1.55)`."""
    if pair.verdict == "not comparable":
        return f"{pair.a} and {pair.b} are not comparable: {pair.why}"
    assert pair.ratio is not None
    low, times, high = map(short, pair.ratio)
    if pair.verdict == "same":
        return f"{pair.a} and {pair.b} carry the same {amount}"
    if pair.verdict == "undecided":
        times = f"{times} times ({low} to {high})"
        return f"undecided whether {pair.a} carries more than {pair.b}: {times}; {pair.why}"
    return f"{pair.a} carries {times} times the {amount} of {pair.b} ({low} to {high})"


def _worded(level: SpeedLevel) -> list[SpeedPair]:
    return [pair for pair in level.pairs if pair.ratio or pair.verdict == "not comparable"]


def _ordered(level: SpeedLevel) -> list[SpeedPair]:
    """The pairs of the backend with most tokens/s, which comes first in each; then the others."""
    ahead = [_reversed(pair) if pair.ratio and pair.ratio.estimate < 1 else pair for pair in _worded(level)]
    most = max(level.figures, key=lambda figure: figure.tokens_per_s or 0.0).label
    return sorted(ahead, key=lambda pair: pair.a != most)


def _more(level: SpeedLevel) -> Iterator[str]:
    if (more := len(_worded(level)) - MOST_PAIRS) > 0:
        yield f"{counted(more, 'more pair')} in summary.json"


def _reversed(pair: SpeedPair) -> SpeedPair:
    assert pair.ratio is not None
    low, middle, high = (1 / end for end in pair.ratio)
    verdict = {"more": "fewer", "fewer": "more"}.get(pair.verdict, pair.verdict)
    return replace(pair, a=pair.b, b=pair.a, verdict=verdict, ratio=Interval(high, middle, low))


def _never(level: SpeedLevel) -> Iterator[str]:
    if names := [figure.label for figure in level.figures if figure.reach == "never so fast"]:
        yield f"{listing(names)} never {'reaches' if len(names) == 1 else 'reach'} it"
