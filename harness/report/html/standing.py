"""The backends at one load, sorted by their median, with a bracket around those that are not separated."""

from harness.model import Order, Place
from harness.model.measures import Measure, measure
from harness.report.html.source import Source
from harness.report.html.svg import sample
from harness.report.html.tags import Html, join, tag
from harness.report.view import Group, Row, point_words
from harness.report.wording import NOT_KNOWN, capital

BRACKET = "; bracket: not all separated"


def standing(source: Source, group: Group, ranking: Order) -> Html:
    places = {position.label: position for position in ranking.places}
    rows = {row.label: row for row in group.rows}
    by = measure(ranking.metric)
    longest = max((position.median or 0.0 for position in ranking.places), default=0.0)

    def line(label: str) -> Html:
        return _row(source, rows[label], places[label], by, longest)

    bodies = [
        tag("tbody", *map(line, labels), class_="tied" if len(labels) > 1 else None)
        for labels in ranking.groups
    ]
    unknown = [position.label for position in ranking.places if position.median is None]
    if unknown:
        bodies.append(tag("tbody", *map(line, unknown)))
    better = "highest" if by.metric.better == "higher" else "lowest"
    title = tag("strong", capital(point_words(group.point)))
    tied = BRACKET if any(len(labels) > 1 for labels in ranking.groups) else ""
    ranged = any(_range(row, by) for row in rows.values())
    median = "median and range of" if ranged else "median"
    caption = tag("caption", title, f", {median} {by.name}, {better} first{tied}")
    return tag("table", caption, *bodies, class_="standing")


def _row(source: Source, row: Row, position: Place, shown: Measure, longest: float) -> Html:
    index = source.index(position.label)
    name = tag("th", join([sample(index), tag("span", position.label)]), scope="row")
    if position.median is None:
        text = tag("span", f"{NOT_KNOWN}: {row.why_unknown(shown.path)}", class_="unknown")
        return tag("tr", name, tag("td", text, colspan="2"), data_series=str(index))
    share = max(0.0, 100 * position.median / longest) if longest > 0 else 0.0  # no bar for less than nothing
    bar = tag("span", class_=f"bar k{index % 8}", style=f"width: {share:.1f}%")
    doubt = [tag("span", " in doubt", class_="suspect", title=position.doubt)] if position.doubt else []
    figure = shown.with_unit(shown.figure(position.median))
    value = tag("td", f"{figure}{_range(row, shown)}", *doubt)
    return tag("tr", name, tag("td", bar, class_="track"), value, data_series=str(index))


def _range(row: Row, shown: Measure) -> str:
    """` (163 to 220)`: the range of the repeats; "" where they do not differ."""
    spread = row.spread(shown.path)
    low, high = (shown.figure(end) for end in (spread.low, spread.high)) if spread else ("", "")
    return f" ({low} to {high})" if low != high else ""
