"""A change with its interval in words, and the limits that it exceeds or keeps to."""

from harness.model import Interval
from harness.model.numbers import digits_apart, fixed, number, short


def words_apart(ratio: Interval, *limits: float) -> tuple[str, ...]:
    """`2.04 % lower (…)`, then each limit as `2 %`.

    All have more digits where an end would read as nothing, or as a limit, that it is not.
    """
    marks = (0.0, *(100 * limit for limit in limits))
    digits = max(digits_apart(100 * abs(end - 1), *marks, least=1) for end in ratio)
    exact = [f"{short(float(fixed(100 * limit, digits)), 6)} %" for limit in limits]
    return span_words(ratio, digits), *(map(share_words, limits) if digits == 1 else exact)


def span_words(ratio: Interval, digits: int = 1) -> str:
    """`9.1 % lower (10.2 % lower to 8.0 % lower)` for a against b."""
    low, middle, high = (_change(end, digits) for end in ratio)
    return f"{middle} ({low} to {high})"


def _change(ratio: float, digits: int) -> str:
    """Zeros at its end stay, so that the ends of an interval have as many digits as its middle."""
    if ratio >= 2:
        return f"{number(ratio)} times"
    return f"{100 * abs(ratio - 1):.{digits}f} % {'lower' if ratio < 1 else 'higher'}"


def share_words(share: float) -> str:
    return f"{short(100 * share, 3 if share >= 0.1 else 2)} %"
