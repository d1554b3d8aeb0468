"""Varies the lengths of answers: equal ones would keep the slots of a closed loop in step."""

from collections.abc import Iterable, Iterator
from random import Random


def spread(lengths: Iterable[int], share: float, random: Random) -> Iterator[int]:
    """Makes lengths up to `share` shorter or longer, in pairs of opposite shares so that the mean stays.

    Takes a number from `random` only if there is something to draw.
    """
    return _drawn(lengths, share, Random(random.random())) if share else iter(lengths)


def _drawn(lengths: Iterable[int], share: float, choice: Random) -> Iterator[int]:
    by = 0.0
    for index, tokens in enumerate(lengths):
        by = -by if index % 2 else choice.uniform(-share, share)
        most = 1 - 1 / tokens  # a token is left, and the longer answer of the pair is as much longer
        yield round(tokens * (1 + max(-most, min(by, most))))
