"""Places for the labels of the points of a chart, so that they hide no mark, no other label and no line.

The ticks that have room for their texts, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import hypot
from typing import NamedTuple

from harness.report.charts.model import Axis

LETTER, HEIGHT = 7.2, 12.0  # of a character on a phone, where text is largest, in the units of the drawing
MARK = 5.0  # from the middle of a mark to its edge
STROKE = 2.0  # wide is a line, for the area of it that a label would hide
MOST_LABELLED = 400  # points: more leave a label no room, and each is compared with all others
NEAR = 40.0  # between two points that one label can be read for
# From the point to where its text begins, and which end of the text that is; the first that is free is taken.
PLACES = (
    (7, -4, "start"),
    (-7, -4, "end"),
    (7, 12, "start"),
    (-7, 12, "end"),
    (0, -9, "middle"),
    (0, 18, "middle"),
)


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: "Box") -> float:
        """The area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide * high if wide > 0 and high > 0 else 0.0

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    def length_of(self, line: "Segment") -> float:
        """The length of the line that lies in the box."""
        x, y, dx, dy = line.x, line.y, line.to_x - line.x, line.to_y - line.y
        begin, end = 0.0, 1.0  # of what is left of the line
        for start, step, low, high in ((x, dx, self.left, self.right), (y, dy, self.top, self.bottom)):
            if step == 0:
                if not low < start < high:
                    return 0.0
                continue
            enters, leaves = sorted(((low - start) / step, (high - start) / step))
            begin, end = max(begin, enters), min(end, leaves)
        return max(end - begin, 0.0) * hypot(dx, dy)


class Segment(NamedTuple):
    """A straight line between two points."""

    x: float
    y: float
    to_x: float
    to_y: float


@dataclass(frozen=True, slots=True)
class Label:
    text: str
    dx: float
    dy: float
    anchor: str


def placed(
    points: Sequence[tuple[float, float, str]], area: Box, lines: Sequence[Segment] = ()
) -> Iterator[Label | None]:
    """A label per point (x, y, text); if every place is taken, the one that hides least.

    None where that would cover another label: neither could be read. None, too, where it would hide something
    and the same text stands so near that it is read for this point too. None for all of very many points.
    """
    if len(points) > MOST_LABELLED:
        yield from repeat(None, len(points))
        return
    marks = [Box(x - MARK, y - MARK, x + MARK, y + MARK) for x, y, _ in points]
    texts: list[Box] = []
    labelled: list[tuple[float, float, str]] = []
    for x, y, text in points:
        boxes = [(_box(x + dx, y + dy, anchor, text), dx, dy, anchor) for dx, dy, anchor in PLACES]
        taken = [*marks, *texts]
        costs = [
            _hidden(box, taken, area) + STROKE * sum(map(box.length_of, lines)) for box, *_place in boxes
        ]
        box, dx, dy, anchor = boxes[costs.index(min(costs))]
        near = any(text == other and abs(x - a) + abs(y - b) < NEAR for a, b, other in labelled)
        if any(map(box.overlap, texts)) or (near and _hidden(box, taken, area) > 0):
            yield None
            continue
        texts.append(box)
        labelled.append((x, y, text))
        yield Label(text, dx, dy, anchor)


def apart(axis: Axis, width: float) -> Iterator[tuple[float, str]]:
    """Ticks whose texts do not touch."""
    end = -LETTER
    for value, text in sorted(axis.ticks, key=lambda tick: axis.place(tick[0])):
        half = len(text) * LETTER / 2 + 5  # digits of a wide font are wider than LETTER
        offset = axis.place(value) * width
        if offset - half > end or not offset:
            yield value, text
            end = offset + half


def _box(x: float, y: float, anchor: str, text: str) -> Box:
    wide = LETTER * len(text)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return Box(left, y - HEIGHT, left + wide, y)


def _hidden(box: Box, taken: Sequence[Box], area: Box) -> float:
    """The area that this place would hide, or lose at the edge."""
    return sum(map(box.overlap, taken)) + box.area - box.overlap(area)
