"""Right and wrong answers to the same questions: did the second become worse, and by how many points?

The test is McNemar's (1947), exact: of the questions right in one alone, half would be each side's if neither
were better. It is taken at LOOKS in the order of asking, each with its part of the level, so that a test that
is decided can end (the parts add up, whatever the answers have in common). The interval is the hull of
Tango's (1998), of the difference of paired shares, and of the one that belongs to the exact test: so it
excludes no change only where that test decides. Below a level of 0.1% Tango's may be the wider one.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from harness.model import AccuracyChange, AccuracyVerdict, Interval
from harness.model.agreement import MARGIN
from harness.stats.binomial import share_above

LEVEL = 0.05
LOOKS = ((1 / 3, 0.1), (2 / 3, 0.3), (1.0, 0.6))  # share of the questions, and of the level
NOT_ASKED = "-"
_STEPS = 50  # halvings


@dataclass(frozen=True, slots=True)
class Change:
    """Change of shares from 0 to 1: the second less the first."""

    compared: int
    lost: int  # right in the first alone
    gained: int
    low: float
    high: float
    p_value: float
    level: float  # of this look
    verdict: AccuracyVerdict

    @property
    def estimate(self) -> float:
        return (self.gained - self.lost) / self.compared

    def between(self, first: str, second: str, *, under_load: bool) -> AccuracyChange:
        return AccuracyChange(
            a=first,
            b=second,
            under_load=under_load,
            compared=self.compared,
            lost=self.lost,
            gained=self.gained,
            change=Interval(self.low, self.estimate, self.high),
            p_value=self.p_value,
            level=self.level,
            verdict=self.verdict,
        )


def change(first: str, second: str, level: float = LEVEL) -> Change | None:
    """Compares marks in the order of asking: `1` right, `0` wrong, `-` not asked. None if nothing compares:
    no question was put to both, or neither is right in any, so that nothing could be lost.

    The result is that of the first look that decides, else of the last look with more questions.
    """
    pairs = list(zip(first, second, strict=False))
    found: Change | None = None
    for end, (_, part) in zip(look_ends(len(pairs)), LOOKS, strict=True):
        both = [pair for pair in pairs[:end] if NOT_ASKED not in pair]
        if len(both) > (found.compared if found else 0) and any("1" in pair for pair in both):
            found = _look(both.count(("1", "0")), both.count(("0", "1")), len(both), part * level)
        if found and found.verdict != "undecided":
            break
    return found


def look_ends(questions: int) -> tuple[int, ...]:
    return tuple(math.ceil(share * questions) for share, _ in LOOKS)


@lru_cache(maxsize=4096)
def _look(lost: int, gained: int, count: int, level: float) -> Change:
    low, high = _hull(_tango(lost, gained, count, level), _conditional(lost, gained, count, level))
    p_value = mcnemar(lost, gained)
    verdict: AccuracyVerdict = "undecided"
    if high < 0:
        verdict = "loses"
    elif low > 0:
        verdict = "gains"
    elif low >= -MARGIN and high <= MARGIN:
        verdict = "same"
    return Change(count, lost, gained, low, high, p_value, level, verdict)


def mcnemar(lost: int, gained: int) -> float:
    """Two-sided exact p; 1 if neither side has any."""
    few, count = min(lost, gained), lost + gained
    tail = sum(math.comb(count, k) for k in range(few + 1))
    p_value: float = 2 * tail / 2**count
    return min(1.0, p_value)


def share_interval(right: int, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Two-sided interval of Clopper and Pearson."""
    return share_above(right, count, 1 - level / 2), 1 - share_above(count - right, count, 1 - level / 2)


def _hull(values: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(values[0], other[0]), max(values[1], other[1])


def _conditional(lost: int, gained: int, count: int, level: float) -> tuple[float, float]:
    """The interval of the side that the differing ones fall to, given how many differ."""
    low, high = share_interval(gained, lost + gained, level) if lost + gained else (0.5, 0.5)
    scale = (lost + gained) / count
    return scale * (2 * low - 1), scale * (2 * high - 1)


def _tango(lost: int, gained: int, count: int, level: float) -> tuple[float, float]:
    """The differences at which the score reaches the quantile; it falls as the difference grows."""
    z = NormalDist().inv_cdf(1 - level / 2)
    estimate = (gained - lost) / count

    def end(inside: float, outside: float) -> float:
        for _ in range(_STEPS):
            middle = (inside + outside) / 2
            if abs(_score(lost, gained, count, middle)) < z:
                inside = middle
            else:
                outside = middle
        return inside

    return end(estimate, -1.0), end(estimate, 1.0)


def _score(lost: int, gained: int, count: int, difference: float) -> float:
    """The score, with the share lost that is most likely under this difference (Tango 1998, equation 5)."""
    b = -gained - lost + (2 * count - gained + lost) * difference
    c = -lost * difference * (1 - difference)
    share_lost = (math.sqrt(max(b * b - 8 * count * c, 0.0)) - b) / (4 * count)
    spread = count * (2 * share_lost + difference * (1 - difference))
    apart = gained - lost - count * difference
    if spread <= 0:
        return 0.0 if abs(apart) < 1e-12 else math.copysign(math.inf, apart)
    return apart / math.sqrt(spread)
