"""One figure over many runs: a point per run, the levels that it had, and where one level became another."""

from collections.abc import Sequence

from harness.model import HistoryEntry
from harness.model.measures import Measure, measure
from harness.model.numbers import counted
from harness.report.charts.axes import linear
from harness.report.charts.model import Axis, Chart, Line, Point
from harness.report.view import point_words
from harness.report.wording import plain, version_words
from harness.verdicts.history import Change, Series, changes, stretches

LEAST = 2  # runs: one alone is no course
LEAST_ROOM = 0.05  # above and below the values, as a share of the largest: noise is not to fill the chart


def course(series: Series) -> Chart | None:
    """None for a single run. A point is labelled with the engine's version if that is new."""
    if len(series.entries) < LEAST:
        return None
    shown = measure(series.metric)
    points = tuple(_point(series, position, shown) for position in range(len(series.entries)))
    y = _around(shown.title, [end for point in points for end in point.ys])
    levels, load = stretches(series), series.load
    flat = (
        Line(
            "level",
            None,
            tuple(Point(x, level.value * shown.scale) for x in (level.start - 0.4, level.stop - 0.6)),
            "ideal",
        )
        for level in levels
    )
    steps = (
        Line("change", None, (Point(level.start - 0.5, y.low), Point(level.start - 0.5, y.high)), "change")
        for level in levels[1:]
    )
    return Chart(
        name="-".join(("course", plain(series.label), *([load.label] if load else ()), series.metric)),
        family="course",
        option=shown.name,
        title=", ".join((plain(series.label, 40), shown.name, *([point_words(load)] if load else ()))),
        description=_description(series, shown),
        x=_runs(series),
        y=y,
        lines=(Line(series.label, 0, points), *flat, *steps),
        reading="x",
        drawn=f"{'geometric mean of its repeats' if load else 'answer of its search'} with its 95% interval"
        if any(point.low is not None for point in points)
        else "",
    )


def change_words(change: Change) -> str:
    """`vllm c4 TTFT p50: 12% worse since …`."""
    name = f"{change.since.where} {measure(change.series.metric).name}"
    return plain(f"{name}: {step_words(change)}")


def step_words(change: Change) -> str:
    """`12% worse since 2026-11-20 (run …d2c1a5, engine 0.32.0; before it 0.31.0)`."""
    since, before = change.since, change.before
    versions = version_words(since.engine_version)
    if before.engine_version != since.engine_version:
        versions += f"; before it {before.engine_version or 'not known'}"
    way = "worse" if change.ratio > 1 else "better"
    return plain(f"{100 * change.share:.1f}% {way} since {_day(since)} (run {since.run}, {versions})")


def _around(title: str, values: Sequence[float]) -> Axis:
    """Need not begin at zero, and says so: such a chart is to show a change of a tenth."""
    low, high = min(values), max(values)
    room = max(0.15 * (high - low), LEAST_ROOM * high)
    begins = max(0.0, low - room)
    return linear(f"{title}, not from 0" if begins else title, begins, high + room)


def _point(series: Series, index: int, shown: Measure) -> Point:
    entry = series.entries[index]
    low, middle, high = entry.metrics[series.metric].interval
    assert middle is not None  # an entry of a series has its figure
    before = series.entries[index - 1].engine_version if index else None
    version = entry.engine_version or "version not known"
    span = "" if low is None or high is None else f" ({shown.figure(low)} to {shown.figure(high)})"
    text = shown.with_unit(f"{shown.figure(middle)}{span}")
    mark = plain(version, 17) if not index or before != entry.engine_version else ""
    return Point(
        float(index),
        middle * shown.scale,
        f"{_day(entry)}, run {entry.run[-6:]}",
        f"{text}, {version}",
        None if low is None else low * shown.scale,
        None if high is None else high * shown.scale,
        None,
        mark,
    )


def _day(entry: HistoryEntry) -> str:
    return entry.created_utc[:10]


def _runs(series: Series) -> Axis:
    begun = [entry.created_utc for entry in series.entries]
    one_day = len({time[:10] for time in begun}) == 1
    title, part = ("hour and minute", slice(11, 16)) if one_day else ("month and day", slice(5, 10))
    ticks = tuple((float(index), time[part]) for index, time in enumerate(begun))
    return Axis(f"runs, by {title}", -0.6, len(begun) - 0.4, ticks)


def _description(series: Series, shown: Measure) -> str:
    values = ", ".join(
        f"{shown.figure(value)} on {_day(entry)}"
        for value, entry in zip(series.values, series.entries, strict=True)
    )
    found = "; ".join(map(change_words, changes(series)))
    runs = counted(len(series.entries), "run")
    return f"{shown.title} of {runs}: {values}. {found or 'No change of level was found'}."
