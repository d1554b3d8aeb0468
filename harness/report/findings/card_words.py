"""The parts of a workload card in words and in bars of characters."""

from collections.abc import Sequence

from harness.model import CardLoad, known
from harness.model.numbers import percent_of_all

_BARS = " ▁▂▃▄▅▆▇█"


def start_words(load: CardLoad) -> str:
    start = known(load.start)
    return f", slots start {start}" if start and load.value > 1 else ""


def bars(counts: Sequence[int]) -> str:
    """A bar per count, rounded up: only a count of 0 is blank. One of them is not 0."""
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // max(counts))] for count in counts)


def share_words(share: float) -> str:
    return f"{percent_of_all(share)}%"
