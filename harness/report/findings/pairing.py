"""Says how engines that were up together shared time and machine, and what would decide soonest."""

from collections.abc import Iterator

from harness.model import Levels, Summary, known
from harness.model.numbers import counted, duration, percent
from harness.report.wording import listing, plain


def pairing_lines(summary: Summary) -> Iterator[str]:
    """Nothing of engines that took turns by starts."""
    rules = summary.verdict_rules
    if rules.pairing == "starts":
        return
    yield plain(f"pairing by {rules.pairing}: {_shared(summary)}", 400)
    for entry in summary.comparison:
        if entry.levels:
            yield plain(f"{entry.load.label}, {entry.a} and {entry.b}: {level_words(entry.levels)}", 400)


def _shared(summary: Summary) -> str:
    seats = dict.fromkeys(cores for cell in summary.cells if (cores := known(cell.cores)))
    load = "loaded at the same moments" if summary.verdict_rules.pairing == "duet" else "loaded in turns"
    if not seats:
        return f"the servers were {load}; a verdict is about this start of each"
    parts = listing([",".join(map(str, cores)) for cores in sorted(seats)])
    return f"all engines were up and {load}; cores {parts}, swapped between starts"


def level_words(levels: Levels) -> str:
    """`blocks differ by 3%, starts by 1% more: 6 blocks in each of 5 starts decide soonest, in 60 s`."""
    spread = f"blocks differ by {percent(levels.within)}%, starts by {percent(levels.between)}% more"
    if levels.blocks is None or levels.starts is None or levels.seconds is None:
        return f"{spread}: no number of blocks in the starts that are allowed would decide"
    plan = f"{counted(levels.blocks, 'block')} in each of {counted(levels.starts, 'start')}"
    return f"{spread}: {plan} decide soonest, in {duration(levels.seconds)} (--blocks {levels.blocks})"
