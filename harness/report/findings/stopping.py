"""How a run was carried out: where it ended, what its repeats have in common, how engines shared time."""

from collections.abc import Iterable, Iterator

from harness.model import Levels, Stopping, Summary, known
from harness.model.measures import measure
from harness.model.numbers import counted, duration, percent
from harness.report.view import repeats, unit_of
from harness.report.wording import listing, plain

_LEFT = "memory layout, compiled graphs and clocks of this start are in every repeat"
ONE_START = {
    "keep": f"kept running between repeats: what earlier repeats left behind, {_LEFT}",
    "reset": f"only its prefix cache was reset between repeats: {_LEFT}",
}


def stopping_lines(summary: Summary) -> Iterator[str]:
    """Nothing for a run with a fixed number of repeats."""
    stopping = summary.stopping
    if not stopping:
        return
    looks, level = stopping.looks, 100 * stopping.alpha_per_look
    unit = unit_of(summary)
    after = f"after {counted(stopping.repeats, unit)}" if stopping.repeats else "before the first look"
    planned = f"looks planned after {listing([str(look) for look in looks])} {unit}s, each at {level:.3g}%"
    yield plain(f"stopped {after}: {_why(summary, stopping)}; {planned}", 400)
    primary = summary.verdict_rules.primary
    if stopping.repeats and any(finding.metric != primary for finding in summary.comparison):
        yield f"the run stops by {measure(primary).name} alone: other metrics may stay undecided"


def _why(summary: Summary, stopping: Stopping) -> str:
    mine = [finding for finding in summary.comparison if finding.primary]
    waiting = sum(finding.verdict == "not enough runs" for finding in mine)
    left = f"{waiting} of {counted(len(mine), 'pair')} not decided"
    if stopping.reason == "decided":
        return "no pair is left that more repeats could decide"
    if stopping.reason == "no-figure":
        return f"{left}, for want of a figure that more repeats would not bring"
    if stopping.reason == "unlikely":
        return f"{left}, and the repeats allowed would hardly decide them (--max-repeats)"
    if stopping.reason == "max-repeats":
        return f"{left} with the most repeats allowed (--max-repeats)"
    if stopping.reason == "budget":
        needed = f"; {stopping.looks[0]} repeats are needed" if not stopping.repeats else ""
        return f"{left}, and more repeats would exceed the budget of {stopping.budget_s:g} s{needed}"
    return f"{left}; the run did not come to its end"


def one_start(summary: Summary) -> Iterator[tuple[str, str]]:
    """Backends whose repeats do not have a start each, and what that leaves uncontrolled."""
    if repeats(summary) < 2:
        return
    declared = summary.verdict_rules.between_repeats
    for how, words in ONE_START.items():
        labels = [label for label, starts in declared.items() if starts == how]
        if labels:
            yield (
                plain(f"{listing(labels)}: {words}"),
                "intervals are over runs of this one start: another start may lie outside",
            )


def pairing_lines(summary: Summary) -> Iterator[str]:
    """Nothing of engines that took turns by starts."""
    rules = summary.verdict_rules
    if rules.pairing == "starts" or not summary.cells:
        return
    yield plain(f"pairing by {rules.pairing}: {_shared(summary)}", 400)
    for entry in summary.comparison:
        if entry.levels:
            yield plain(f"{entry.load.label}, {entry.a} and {entry.b}: {level_words(entry.levels)}", 400)


def _shared(summary: Summary) -> str:
    label, *others = dict.fromkeys(cell.label for cell in summary.cells)
    if not others:
        return f"{label} was loaded alone, since no other was measured"
    seats = dict.fromkeys(cores for cell in summary.cells if (cores := known(cell.cores)))
    load = "loaded at the same moments" if summary.verdict_rules.pairing == "duet" else "loaded in turns"
    if not seats:
        return f"the servers were {load}; a verdict is about this start of each"
    gpus = dict.fromkeys(cell.gpu.engine_gpus for cell in summary.cells if cell.gpu)
    apart = f" and GPUs {_parts(gpus)}" if len(gpus) > 1 else ""
    return f"all engines were up and {load}; cores {_parts(seats)}{apart}, swapped between starts"


def _parts(seats: Iterable[tuple[int, ...]]) -> str:
    return listing([",".join(map(str, numbers)) for numbers in sorted(seats)])


def level_words(levels: Levels) -> str:
    """`blocks differ by 3%, starts by 1% more: 6 blocks in each of 5 starts decide soonest, in 60 s`."""
    spread = f"blocks differ by {percent(levels.within)}%, starts by {percent(levels.between)}% more"
    if levels.blocks is None or levels.starts is None or levels.seconds is None:
        return f"{spread}: no number of blocks in the starts that are allowed would decide"
    plan = f"{counted(levels.blocks, 'block')} in each of {counted(levels.starts, 'start')}"
    return f"{spread}: {plan} decide soonest, in {duration(levels.seconds)} (--blocks {levels.blocks})"
