"""A chart as an SVG of the page itself: small, themed by the page, each value there to be read."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

from harness.report.charts import Axis, Chart, Line, Point
from harness.report.charts.point_labels import LETTER, Box, Label, Segment, apart, placed
from harness.report.html.tags import Html, join, tag
from harness.report.wording import short_names

WIDTH, HEIGHT, ROW = 420.0, 270.0, 27.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 18.0, 10.0, 40.0
TITLE_ROOM = 24.0  # of the title of the upright axis, with the gaps on both its sides
NAMES_MOST, NAMES_GAP = 200.0, 14.0  # of a chart on its side: room for its names, and what is free there
WIDE = 8.6  # of a digit, or of a letter of a name, on a phone whose font is wide
MARK_EVERY = 22  # points of a curve that is made of many

# Of the size of a mark in the pictures for papers, in the same order.
MARKS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",
    "M-3.6,-3.6h7.2v7.2h-7.2z",
    "M0,-4.6L4.4,3.4H-4.4z",
    "M0,-5L5,0L0,5L-5,0z",
    "M0,4.6L4.4,-3.4H-4.4z",
    "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "M-4.2,-2.2L-2.2,-4.2L0,-2L2.2,-4.2L4.2,-2.2L2,0L4.2,2.2L2.2,4.2L0,2L-2.2,4.2L-4.2,2.2L-2,0z",
    "M0,-5.2L1.4,-1.7L5,-1.6L2.2,.8L3.2,4.4L0,2.3L-3.2,4.4L-2.2,.8L-5,-1.6L-1.4,-1.7z",
    "M-4.8,0L3.4,-4.4V4.4z",
)
DASHES = (None, "7 2.5", "2.2 2", "9 2.5 2.2 2.5", "4 1.6 1.4 1.6 1.4 1.6")


def draw(chart: Chart) -> Html:
    return _Drawing(chart).html()


def sample(index: int) -> Html:
    """Line and mark of a backend, for legends."""
    line = tag("path", d="M1,6H27", class_="line", stroke_dasharray=DASHES[index % len(DASHES)])
    mark = tag("path", d=MARKS[index % len(MARKS)], class_="mark", transform="translate(14,6)")
    return tag("svg", line, mark, viewBox="0 0 28 12", class_=f"sample k{index % 8}", aria_hidden="true")


def mark(index: int) -> Html:
    """The mark of a backend alone, for tables: with its colour, which returns, it is one of seventy-two."""
    shape = tag("path", d=MARKS[index % len(MARKS)], class_="mark")
    return tag("svg", shape, viewBox="-6 -6 12 12", class_=f"swatch k{index % 8}", aria_hidden="true")


class _Drawing:
    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        longest = max((len(text) for _, text in chart.y.ticks), default=0)
        names, figures = NAMES_GAP + WIDE * longest, TITLE_ROOM + WIDE * longest
        self.left = min(NAMES_MOST, names) if chart.sideways else max(LEFT, figures)
        self.height = TOP + BOTTOM + ROW * len(chart.y.ticks) if chart.sideways else HEIGHT
        self.bottom = self.height - BOTTOM
        self.labels = self._labels()  # of the points that have one

    def x(self, value: float) -> float:
        return self.left + self.chart.x.place(value) * (WIDTH - RIGHT - self.left)

    def y(self, value: float) -> float:
        return self.bottom - self.chart.y.place(value) * (self.bottom - TOP)

    def _labels(self) -> dict[Point, Label]:
        marked = [point for line in self.chart.lines for point in line.points if point.mark]
        area = Box(self.left, TOP, WIDTH - RIGHT, self.bottom)
        spots = [(self.x(point.x), self.y(point.y), point.mark) for point in marked]
        lines = [
            Segment(self.x(first.x), self.y(first.y), self.x(last.x), self.y(last.y))
            for line in self.chart.lines
            for first, last in pairwise(line.points)
        ]
        places = placed(spots, area, lines)
        return {point: label for point, label in zip(marked, places, strict=True) if label is not None}

    def html(self) -> Html:
        chart = self.chart
        return tag(
            "svg",
            *self._grid(),
            tag("g", *self._y_ticks(), class_="ticks y"),
            tag("g", *self._x_ticks(), class_="ticks x"),
            self._titles(),
            *(self._line(line) for line in chart.lines),
            tag("path", class_="cross", d=""),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH:g} {self.height:g}",
            role="img",
            aria_label=f"{chart.title}. {chart.description}",
            data_reading=chart.reading,
            data_area=f"{self.left:g} {TOP:g} {WIDTH - RIGHT:g} {self.bottom:g}",
            data_axes=json.dumps({"x": _ends(chart.x), "y": _ends(chart.y)}),
            data_better="right" if chart.right else "left",
        )

    def _grid(self) -> Iterator[Html]:
        across = (f"M{self.left:g},{_n(self.y(value))}H{WIDTH - RIGHT:g}" for value, _ in self.chart.y.ticks)
        down = (f"M{_n(self.x(value))},{TOP:g}V{self.bottom:g}" for value, _ in self.chart.x.ticks)
        if not self.chart.sideways:
            yield tag("path", d="".join(across), class_="grid y")
        yield tag("path", d="".join(down), class_="grid x")

    def _y_ticks(self) -> Iterator[Html]:
        room = self.left - NAMES_GAP + WIDE
        cut = short_names((text for _, text in self.chart.y.ticks), int(room / WIDE))
        for value, text in self.chart.y.ticks:
            yield tag("text", cut[text], x=_n(self.left - 6), y=_n(self.y(value) + 4), text_anchor="end")

    def _x_ticks(self) -> Iterator[Html]:
        for value, text in apart(self.chart.x, WIDTH - RIGHT - self.left):
            middle = min(self.x(value), WIDTH - WIDE * len(text) / 2)
            yield tag("text", text, x=_n(middle), y=_n(self.bottom + 15), text_anchor="middle")

    def _titles(self) -> Html:
        x, y = self.chart.x, self.chart.y
        half = LETTER * len(x.words) / 2
        middle = max(half, min((self.left + WIDTH - RIGHT) / 2, WIDTH - half))
        below = tag(
            "text", x.words, x=_n(middle), y=_n(self.height - 6), text_anchor="middle", class_="title x"
        )
        if not y.title:
            return below
        left = tag(
            "text", y.words, text_anchor="middle", class_="title y",
            transform=f"translate(14,{_n((TOP + self.bottom) / 2)}) rotate(-90)",
        )  # fmt: skip
        return join([below, left])

    def _line(self, line: Line) -> Html:
        path = "M" + "L".join(f"{_n(self.x(point.x))},{_n(self.y(point.y))}" for point in line.points)
        if line.backend is None:
            return tag("path", d=path, class_=line.role)
        index = line.backend
        own = self.chart.family != "course"  # a course goes over all runs, and a switch hides one of them
        look = {"class_": f"k{index % 8}", "data_series": str(index) if own else None}
        if line.role == "repeat":
            return tag("path", d=path, class_=f"repeat k{index % 8}", data_series=str(index))
        drawn = [] if self.chart.sideways else [
            tag("path", d=path, class_="line", stroke_dasharray=DASHES[index % len(DASHES)])
        ]  # fmt: skip
        bars = "".join(filter(None, map(self._bar, line.points)))
        if bars:
            drawn.append(tag("path", d=bars, class_="bars"))
        drawn += [
            tag("path", d=MARKS[index % len(MARKS)], class_="mark",
                transform=self._at(point))
            for point in _marked(line.points, index)
        ]  # fmt: skip
        drawn += [self._label(point) for point in line.points if point in self.labels]
        return tag("g", *drawn, data_name=line.label, data_points=self._readable(line.points), **look)

    def _label(self, point: Point) -> Html:
        label = self.labels[point]
        return tag(
            "text", label.text, x=_n(label.dx), y=_n(label.dy), text_anchor=label.anchor, class_="at",
            transform=self._at(point),
        )  # fmt: skip

    def _at(self, point: Point) -> str:
        return f"translate({_n(self.x(point.x))},{_n(self.y(point.y))})"

    def _bar(self, point: Point) -> str:
        along = None if point.low is None or point.high is None else (point.low, point.high)
        across, up = (along, None) if self.chart.sideways else (point.across, along)
        drawn = ""
        if across:
            low, high, y = self.x(across[0]), self.x(across[1]), self.y(point.y)
            drawn += f"M{_n(low)},{_n(y)}H{_n(high)}{_cap(low, y, 'm0,-3v6')}{_cap(high, y, 'm0,-3v6')}"
        if up:
            low, high, x = self.y(up[0]), self.y(up[1]), self.x(point.x)
            drawn += f"M{_n(x)},{_n(low)}V{_n(high)}{_cap(x, low, 'm-3,0h6')}{_cap(x, high, 'm-3,0h6')}"
        return drawn

    def _readable(self, points: Sequence[Point]) -> str:
        """Key, place and words of every point that can be read."""
        points_read = [
            [p.key, round(self.x(p.x), 2), round(self.y(p.y), 2), p.text] for p in points if p.text
        ]
        return json.dumps(points_read, ensure_ascii=False, separators=(",", ":"))


def _cap(x: float, y: float, stroke: str) -> str:
    """The `stroke` is relative to the end of the bar: the script of the page moves ends, and no stroke."""
    return f"M{_n(x)},{_n(y)}{stroke}"


def _marked(points: Sequence[Point], index: int) -> Sequence[Point]:
    """A few points of a long curve, at another height for each backend."""
    return points[2 + 2 * (index % 8) :: MARK_EVERY] if len(points) > 2 * MARK_EVERY else points


def _ends(axis: Axis) -> tuple[float, float, bool, bool]:
    return axis.low, axis.high, axis.log, axis.fits


def _n(value: float) -> str:
    """Fine enough to be enlarged thirty times, when the backend that needs the room is hidden."""
    return f"{value:.2f}".rstrip("0").removesuffix(".")
