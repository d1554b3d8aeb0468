"""What a falling curve may be between two of its points, where its shape is not known."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

Point = tuple[float, float]


class Between(NamedTuple):
    """The height of a straight line between two points, and the ends of what other shapes may give."""

    low: float
    middle: float
    high: float


def stretch(points: Sequence[Point], x: float) -> int | None:
    """Index of the first of two neighbours that have `x` between them; None outside the curve."""
    return next((index for index, ((x1, _), (x2, _)) in enumerate(pairwise(points)) if x1 >= x >= x2), None)


def between(points: Sequence[Point], x: float) -> Between | None:
    """The height at `x` in the first stretch that holds it; None outside the curve.

    `points` have falling x and rising y, all above 0. The low end is that of a power law through the two
    neighbours. The high end is that of a curve that bends downwards everywhere: it stays below the prolonged
    lines of the stretches next to it, and below the higher neighbour.
    """
    if (index := stretch(points, x)) is None:
        return None
    first, second = points[index : index + 2]
    (x1, y1), (x2, y2) = first, second
    if x1 == x2:
        return Between(min(y1, y2), max(y1, y2), max(y1, y2))
    middle = _line(first, second, x)
    low = math.exp(_line((math.log(x1), math.log(y1)), (math.log(x2), math.log(y2)), math.log(x)))
    tops = [max(y1, y2)]
    if index:
        tops += _beyond(points[index - 1], first, x)
    if index + 2 < len(points):
        tops += _beyond(second, points[index + 2], x)
    return Between(min(low, middle), middle, max(min(tops), middle))


def _beyond(first: Point, second: Point, x: float) -> list[float]:
    """The line through both, prolonged to `x`; nothing of points above each other."""
    return [_line(first, second, x)] if first[0] > second[0] else []


def _line(first: Point, second: Point, x: float) -> float:
    (x1, y1), (x2, y2) = first, second
    return y1 + (x - x1) / (x2 - x1) * (y2 - y1)
