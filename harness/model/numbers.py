"""Numbers as people read them, and how many there are of a thing. Knows no output format."""

import math
from collections.abc import Callable, Mapping

GIB = 1 << 30  # bytes
_ALIKE = 0.05  # relative difference
_SAME = 1e-7  # a difference that arithmetic makes


def about_equal(first: float, second: float) -> bool:
    """Whether two starts of one engine may report these: the memory that is free sizes a KV cache."""
    return math.isclose(first, second, rel_tol=_ALIKE)


def quotient(amount: float | None, divisor: float | None) -> float | None:
    """None where either is not known, or the divisor is 0."""
    return amount / divisor if amount is not None and divisor else None


def number(value: float, *marks: float) -> str:
    """Three significant digits, whole numbers from a hundred on; more where it reads as a mark."""
    size = abs(value)
    if size == 0:
        return "0"
    if size <= 0.0095:  # which three decimals would show as 0.009, less than 0.00949
        return f"{value:.2g}"
    decimals = sum(size < limit for limit in (99.95, 9.995, 0.9995))
    return fixed(value, digits_apart(value, *marks, least=decimals))


def short(value: float, digits: int = 3) -> str:
    """So many significant digits without zeros at their end; whole numbers are whole.

    `:.3g` alone makes 1.02e+03 of 1024.
    """
    return f"{value:.{digits}g}" if abs(value) < 10**digits - 0.5 else f"{value:.0f}"


def as_given(load: float) -> str:
    """The value of a load as it was asked for, in ten digits: two loads of a run never get one name."""
    return f"{load:.10g}"


def percent(share: float) -> str:
    """Two digits, whole from a hundred on, without the sign: 105.4 is not 110."""
    return short(100 * share, 2)


def percent_of_all(share: float, *limits: float) -> str:
    """Three digits or more, without the sign: less than the whole, or than a limit, never reads as that."""
    value, digits = 100 * share, 3
    marks = [100 * mark for mark in (1.0, *limits) if value < 100 * mark]
    while any(float(f"{value:.{digits}g}") >= mark for mark in marks):
        digits += 1
    return short(value, digits)


def percent_figure(share: float) -> str:
    """Shown as `number` does, without the sign; less than the whole is never 100."""
    shown = number(100 * share)
    return percent_of_all(share) if share < 1 and shown == "100" else shown


def signed(value: float, decimals: int = 1) -> str:
    """Nothing has no minus."""
    return f"{value:+z.{decimals}f}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{as_given(round(seconds / 60, 1 if seconds < 165 else None))} min"
    return f"{seconds / 3600:.1f} h"


def percent_apart(share: float, *limits: float, decimals: int = 0) -> str:
    """Whole, without the sign; more decimals where it reads as nothing, all or a limit that it is not."""
    marks = (0.0, 100.0, *(100 * limit for limit in limits))
    return fixed(100 * share, digits_apart(100 * share, *marks, least=decimals))


def apart(value: float, limit: float, decimals: int) -> tuple[str, str]:
    """Both with so many decimals; more where they are not equal and would read alike."""
    decimals = digits_apart(value, limit, least=decimals)
    return fixed(value, decimals), fixed(limit, decimals)


def fixed(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"


def digits_apart(value: float, *marks: float, least: int, shown: Callable[[float, int], str] = fixed) -> int:
    """The fewest digits of `shown`, from `least` on, with which the value reads as no mark that it is not."""
    near = [mark for mark in marks if abs(value - mark) > _SAME]
    digits = least
    while any(shown(value, digits) == shown(mark, digits) for mark in near):
        digits += 1
    return digits


def with_unit(figures: str, unit: str) -> str:
    """`79.2 ms`, `80%`; what has no unit stays as it is."""
    return f"{figures}{unit}" if unit == "%" else f"{figures} {unit}".rstrip()


def counted(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{plural}"


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names by falling count. Equal counts are in the order of their names, not in that of the records."""
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
