"""The backends at one load, sorted by their median, with a bracket around those that are not separated."""

from harness.model import Order, Place
from harness.model.measures import Measure, measure
from harness.report.html.source import Source
from harness.report.html.svg import sample
from harness.report.html.tags import Html, join, tag
from harness.report.view import Group, Row, point_words
from harness.report.wording import NOT_KNOWN, number

BRACKET = "; bracket: not all separated"


def standing(source: Source, group: Group, of: Order) -> Html:
    places = {place.label: place for place in of.places}
    rows = {row.label: row for row in group.rows}
    by = measure(of.metric)
    longest = max((place.median or 0.0 for place in of.places), default=0.0)

    def line(label: str) -> Html:
        return _row(source, rows[label], places[label], by, longest)

    bodies = [
        tag("tbody", *map(line, labels), class_="tied" if len(labels) > 1 else None) for labels in of.groups
    ]
    unknown = [place.label for place in of.places if place.median is None]
    if unknown:
        bodies.append(tag("tbody", *map(line, unknown)))
    better = "highest" if by.metric.better == "higher" else "lowest"
    title = tag("strong", point_words(group.point).capitalize())
    tied = BRACKET if any(len(labels) > 1 for labels in of.groups) else ""
    caption = tag("caption", title, f", median {by.name}, {better} first{tied}")
    return tag("table", caption, *bodies, class_="standing")


def _row(source: Source, row: Row, place: Place, of: Measure, longest: float) -> Html:
    index = source.index(place.label)
    name = tag("th", join([sample(index), place.label]), scope="row")
    if place.median is None:
        text = tag("span", f"{NOT_KNOWN}: {row.why_unknown(of.path)}", class_="unknown")
        return tag("tr", name, tag("td", text, colspan="2"), data_series=str(index))
    share = 100 * place.median / longest if longest else 0.0
    bar = tag("span", class_=f"bar k{index % 8}", style=f"width: {share:.1f}%")
    doubt = [tag("span", " in doubt", class_="suspect", title=place.doubt)] if place.doubt else []
    value = tag("td", _value(row, place, of), *doubt)
    return tag("tr", name, tag("td", bar, class_="track"), value, data_series=str(index))


def _value(row: Row, place: Place, of: Measure) -> str:
    """`191 ms (163 to 220)`: the range of the repeats."""
    text = f"{number((place.median or 0.0) * of.scale)} {of.unit}".strip()
    spread = row.spread(of.path)
    if spread is None:
        return text
    low, high = number(spread.low * of.scale), number(spread.high * of.scale)
    return f"{text} ({low} to {high})" if low != high else text
