"""A change with its interval in words, and the limits that it exceeds or keeps to."""

from collections.abc import Sequence

from harness.model import Interval
from harness.model.numbers import digits_apart, fixed, number, short

_SAME = 1e-9  # a difference that arithmetic makes


def words_apart(ratio: Interval, *limits: float) -> tuple[str, ...]:
    """`2.04% lower (…)`, then each limit as `2%`.

    All have more digits where an end would read as a limit, or as nothing, that it is not. Below 1 a limit
    of 2% lies at 1.96% lower: it is `2% (1.96% lower)` where an end of 1.98% would read as within it.
    """
    lower = {limit: 1 / (1 + limit) for limit in limits if _reads_as_within(ratio, limit)}
    marks = [*(100 * limit for limit in limits), *(100 * (1 - inverse) for inverse in lower.values())]
    digits = max(_digits(100 * abs(end - 1), marks) for end in ratio)
    return span_words(ratio, digits), *(_limit_words(limit, digits, lower.get(limit)) for limit in limits)


def _reads_as_within(ratio: Interval, limit: float) -> bool:
    """Whether an end that is lower exceeds the limit as a ratio alone; an upper end above it says enough."""
    ends = (ratio.low, ratio.high)
    return ratio.high <= 1 + limit and any(1 - limit - _SAME < end < 1 / (1 + limit) for end in ends)


def _digits(change: float, marks: Sequence[float]) -> int:
    """Two at most for an end near nothing: more would show all ends more exactly than they are known."""
    return max(digits_apart(change, *marks, least=1), min(2, digits_apart(change, 0.0, least=1)))


def _limit_words(limit: float, digits: int, lower: float | None) -> str:
    words = share_words(limit) if digits == 1 else f"{short(float(fixed(100 * limit, digits)), 6)}%"
    return f"{words} ({_change(lower, digits)})" if lower else words


def span_words(ratio: Interval, digits: int = 1) -> str:
    """`9.1% lower (10.2% lower to 8.0% lower)` for a against b; from a doubling on all three in times."""
    low, middle, high = (_change(end, digits, times=ratio.estimate >= 2) for end in ratio)
    return f"{middle} ({low} to {high})"


def _change(ratio: float, digits: int, *, times: bool = False) -> str:
    """Zeros at its end stay, so that the ends of an interval have as many digits as its middle.

    In `times` an end below 2 is as exact as its percentage, which reads as no limit that it is not.
    """
    if times:
        return f"{number(ratio) if ratio >= 2 else fixed(ratio, digits + 2)} times"
    return f"{100 * abs(ratio - 1):.{digits}f}% {'lower' if ratio < 1 else 'higher'}"


def share_words(share: float) -> str:
    return f"{short(100 * share, 3 if share >= 0.1 else 2)}%"
