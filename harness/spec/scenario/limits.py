"""Limits that several tables share, as types of their fields. Each raises SpecError that names the key."""

from collections.abc import Callable
from functools import partial
from math import inf, isfinite
from typing import Annotated

from harness.errors import SpecError

# What is made of more would not fit into memory, nor its times into nanoseconds of 64 bits.
MOST, MOST_REPEATS = 10_000_000, 10_000
LONGEST_S = 31_536_000  # a year; clocks and sockets wait for 292 at most


def at_least(least: float, most: float = MOST) -> Callable[[float, str], None]:
    """Refuses more tokens, texts or seconds than could be made, too."""

    def check(value: float, where: str) -> None:
        if not value >= least:
            raise SpecError(f"must be at least {least:g}, not {value}", where=where)
        at_most(value, where, most)

    return check


def positive(value: float, where: str, most: float = inf) -> None:
    """`where`: of the key itself. Infinity and NaN are refused too, which TOML can write."""
    if not 0 < value < inf:
        number = "above 0" if isfinite(value) else "a finite number above 0"
        raise SpecError(f"must be {number}, not {value:g}", where=where)
    at_most(value, where, most)


def not_negative(value: float, where: str, most: float = inf) -> None:
    """`where`: of the key itself. Infinity and NaN are refused too, which TOML can write."""
    if not 0 <= value < inf:
        number = "not be negative" if isfinite(value) else "be a finite number of at least 0"
        raise SpecError(f"must {number}, not {value:g}", where=where)
    at_most(value, where, most)


def at_most(value: float, where: str, most: float) -> None:
    """`where`: of the key itself."""
    if value > most:
        raise SpecError(f"must be at most {most:,}, not {value:,.10g}", where=where)


def _check_below_1(share: float, where: str) -> None:
    if not 0 <= share < 1:
        raise SpecError(f"must be from 0 to below 1, not {share}", where=where)


Count = Annotated[int, at_least(1)]
NotNegative = Annotated[float, at_least(0)]
CountOrZero = Annotated[int, at_least(0)]
Share = Annotated[float, _check_below_1]
Seconds = Annotated[float, partial(not_negative, most=LONGEST_S)]
Duration = Annotated[float, partial(positive, most=LONGEST_S)]
