"""Coordinate descent with successive halving. Pure: what is measured, and how long, is the caller's.

One key after the other, the others kept; of its candidates all get a short trial, the better half a longer
one, the half of those one of full length (Karnin, Koren, Somekh 2013; Jamieson, Talwalkar 2016). Repeated
until a pass over all keys changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.spec.backend import Value

Values = Mapping[str, Value]
SHARES = (0.25, 0.5, 1.0)  # of the scenario's requests
# A key leaves its value only for a gain that one trial can show; the comparison at the end decides.
LEAST_GAIN = 0.02
_NEXT_TO_0 = 1e-9  # nothing is a multiple of 0, which is the goodput of a default that keeps no limit


@dataclass
class Search:
    """`measure` gives the metric of values at a share of the requests, None where the trial failed.

    `spent` says that no other trial may begin.
    """

    tunable: Mapping[str, Sequence[Value]]
    better: Literal["lower", "higher"]
    measure: Callable[[Values, float], float | None]
    spent: Callable[[], bool]
    shares: Sequence[float] = SHARES
    # Better than the default in a trial that there was no time to give to its rivals.
    unfinished: Values | None = field(default=None, init=False)
    _known: dict[tuple[object, float], float | None] = field(default_factory=dict, init=False)

    def best(self, start: Values) -> Values | None:
        """None where `start` itself has no figure at any length."""
        shares = self._shares(start)
        if not shares:
            return None
        best, changed = dict(start), True
        while changed and not self.spent():
            before = dict(best)
            for key, candidates in self.tunable.items():
                best = self._line(best, key, candidates, shares)
            changed = best != before
        return best

    def _shares(self, start: Values) -> tuple[float, ...]:
        """Shares that are long enough for the metric to have a figure."""
        for index, share in enumerate(self.shares):
            if self._value(start, share) is not None:
                return tuple(self.shares[index:])
        return ()

    def _line(
        self, best: dict[str, Value], key: str, candidates: Sequence[Value], shares: Sequence[float]
    ) -> dict[str, Value]:
        """`best`, or with another value of `key`: by the longest trials that there was time for."""
        leader = best
        rivals = [{**best, key: value} for value in candidates if value != best[key]]
        for share in shares:
            own = self._value(best, share)
            if own is None:
                break
            gains = [(self._gain(rival, own, share), index) for index, rival in enumerate(rivals)]
            ranked = [(gain, index) for gain, index in sorted(gains, reverse=True) if gain > 0]
            first = rivals[ranked[0][1]] if ranked and ranked[0][0] > LEAST_GAIN else best
            if not all((_key(rival), share) in self._known for rival in rivals):  # the time ended before
                self.unfinished = self.unfinished or (first if first != best else None)
                break
            leader = first
            rivals = [rivals[index] for _, index in ranked[: (len(rivals) + 1) // 2]]
            if not rivals:
                break
        return leader

    def _gain(self, rival: Values, own: float, share: float) -> float:
        """Share by which it is better; below 0 where it has no figure."""
        value = self._value(rival, share)
        if value is None or min(value, own) < 0:  # no ratio is known of a difference below 0
            return -1.0
        more, less = (value, own) if self.better == "higher" else (own, value)
        return more / max(less, _NEXT_TO_0) - 1

    def _value(self, values: Values, share: float) -> float | None:
        """Measured once; None also where the budget was spent before."""
        key = _key(values), share
        if key not in self._known:
            if self.spent():
                return None
            self._known[key] = self.measure(values, share)
        return self._known[key]


def _key(values: Values) -> object:
    return tuple(sorted(values.items()))
