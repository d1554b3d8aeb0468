"""Doubts about what is compared: repeats that are SUSPECT for a metric with a figure or a verdict."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from harness.model import ComparedLabel, ComparedPair, LoadPoint
from harness.model.baseline import ComparedDoubt
from harness.model.grouping import grouped
from harness.verdicts.pairs import Pairing
from harness.verdicts.run_values import Series

_Compared = tuple[ComparedLabel, LoadPoint]


def doubted(pairs: Sequence[tuple[ComparedPair, Sequence[Pairing]]]) -> tuple[ComparedDoubt, ...]:
    """The doubts of each side and load once, however many pairs it is in."""
    sides = dict(chain.from_iterable(_sides(*pair) for pair in pairs))
    metrics = grouped(chain.from_iterable(_metrics(pair) for pair, _pairings in pairs))
    return tuple(_doubt(compared, sides[compared], names) for compared, names in metrics.items())


def _sides(pair: ComparedPair, pairings: Sequence[Pairing]) -> Iterator[tuple[_Compared, Series]]:
    for pairing in pairings:
        yield (pair.a, pairing.load), pairing.a
        yield (pair.b, pairing.load), pairing.b


def _metrics(pair: ComparedPair) -> Iterator[tuple[_Compared, str]]:
    """Leaves out the loads of a search, which were tried by chance: its capacities are compared."""
    for figure in pair.findings if pair.capacity is None else ():
        if figure.verdict != "not comparable":
            yield (pair.a, figure.load), figure.metric
            yield (pair.b, figure.load), figure.metric


def _doubt(compared: _Compared, side: Series, metrics: Sequence[str]) -> ComparedDoubt:
    about, load = compared
    judged = [cell.validity_of(metrics) for cell in side.cells]
    suspect = [{str(reason.code) for reason in validity.reasons} for validity in judged if validity.reasons]
    codes = dict(Counter(chain.from_iterable(map(sorted, suspect))))
    return ComparedDoubt(about=about, load=load, suspect=len(suspect), repeats=len(judged), codes=codes)
