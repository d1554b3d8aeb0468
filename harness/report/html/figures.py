"""The charts of the page in families with a choice of metric, the legend, and the timelines."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from harness.report.charts import Chart
from harness.report.charts.pareto import EQUAL_SPEED
from harness.report.html.source import Source
from harness.report.html.svg import draw, sample
from harness.report.html.tags import Html, details, join, section, tag
from harness.report.plots import GRID, INK, MUTED, PALETTE, PAPER, Picture

FAMILIES = {
    "load": (
        "Against the load",
        "One point per load; a backend that is not drawn did not report this figure, or its cells are "
        "INVALID.",
    ),
    "depth": (
        "Against the depth of the context",
        "One point per class of prompts, up to so many tokens; a class without an answer has none.",
    ),
    "trade-off": (
        "Trade-offs",
        "Up is better, and to the left where the axis below is a latency, else to the right; the grey line "
        "joins the points that no other beats in both. Loads that a server did not keep up with are left "
        "out.",
    ),
    "distribution": (
        "Distributions",
        "What share was at least this fast; a curve that ends below 100% has requests without an answer. "
        "Thin lines, where the backends are few, are single repeats.",
    ),
}
HOW_TO_READ = "Point at a chart, or reach it with Tab and use the arrow keys, to read its values."
MANY = 3  # timelines: with more they are folded

# Colours of the pictures → custom properties, so that they follow the reader's light or dark setting.
THEME = {
    INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)",
    **{color: f"var(--s{index})" for index, color in enumerate(PALETTE)},
}  # fmt: skip


def charts(source: Source) -> Html | None:
    """None if there is nothing to draw."""
    families = [(name, [chart for chart in source.charts if chart.family == name]) for name in FAMILIES]
    parts = [_family(name, family) for name, family in families if family]
    if not parts:
        return None
    return section(
        "charts",
        "Charts",
        tag("p", HOW_TO_READ, class_="muted scripted", hidden=""),
        tag("div", *parts, class_="families"),
    )


def _family(name: str, members: Sequence[Chart]) -> Html:
    title, explained = FAMILIES[name]
    options = list(dict.fromkeys(chart.option for chart in members))
    choice = tag(
        "label",
        "Metric ",
        tag("select", *(tag("option", option, value=option) for option in options)),
        class_="choice scripted",
        hidden="",
    )
    return tag(
        "div",
        tag("h3", title),
        tag("p", explained, class_="muted"),
        choice if len(options) > 1 else None,
        tag("div", *(figure(chart) for chart in members), class_="figures"),
        class_="family",
        data_family=name,
    )


def figure(chart: Chart, *, files: bool = True) -> Html:
    """`files`: with links to its pictures, if it has some."""
    notes: list[str] = [f"Drawn: {chart.drawn}. "] if chart.drawn else []
    if any(line.label == line.role == "ideal" for line in chart.lines):
        notes.append("Dotted: the ideal. ")
    if any(line.label == "limit" and line.role == "ideal" for line in chart.lines):
        notes.append("Dotted: the limit. ")
    if any(line.label == EQUAL_SPEED for line in chart.lines):
        notes.append("Dotted: speeds at which backends are compared. ")
    return tag(
        "figure",
        tag("figcaption", tag("b", chart.title)),
        tag("div", draw(chart), class_="plot", tabindex="0", role="group", aria_label=chart.title),
        tag("output", class_="read", aria_live="polite"),
        tag("p", *notes, *(_files(chart.name) if chart.paper and files else []), class_="muted small"),
        data_option=chart.option,
    )


def _files(name: str) -> list[str]:
    links = [tag("a", ending.upper(), href=quote(f"plots/{name}.{ending}")) for ending in ("png", "svg")]
    return ["For papers: ", links[0], " or ", links[1], "."]


def timelines(source: Source) -> Html | None:
    if not source.pictures:
        return None
    drawn = [_timeline(source, picture, svg, index) for index, (picture, svg) in enumerate(source.pictures)]
    if len(drawn) > MANY:
        titles = (picture.title for picture, _ in source.pictures)
        folded = (details(title, figure) for title, figure in zip(titles, drawn, strict=True))
        some = tag("p", f"Shown: {len(drawn)} of {len(source.labels):,} backends.", class_="muted")
        return section("timelines", "Timelines", some if len(drawn) < len(source.labels) else None, *folded)
    return section("timelines", "Timelines", tag("div", *drawn, class_="wide-figures"))


def _timeline(source: Source, picture: Picture, svg: str, index: int) -> Html:
    drawn = inline(svg, f"f{index}-", f"{picture.title}. {picture.description}")
    known = picture.backend and picture.backend in source.labels
    return tag(
        "figure",
        tag("div", drawn, class_="picture", tabindex="0", role="group", aria_label=picture.title),
        tag("figcaption", *_files(picture.name), class_="muted small"),
        data_series=str(source.index(picture.backend)) if known else None,
    )


def inline(svg: str, prefix: str, description: str) -> Html:
    """`svg` is one of our own pictures: matplotlib has escaped every name in it."""
    start = svg.index("<svg")
    body = svg[svg.index(">", start) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}', body)
    body = re.sub(r'(url\(|href=")#', rf"\g<1>#{prefix}", body)
    for color, variable in THEME.items():
        body = body.replace(f": {color.lower()}", f": {variable}")
    box = re.search(r'viewBox="[\d. ]+"', svg)
    opening = tag("svg", xmlns="http://www.w3.org/2000/svg", role="img", aria_label=description)
    head = opening.removesuffix("></svg>")
    return Html(f'{head} xmlns:xlink="http://www.w3.org/1999/xlink" {box[0] if box else ""}>{body.strip()}')


def legend(source: Source, names: Iterable[str]) -> Html:
    """The meaning of the lines; with a script also a switch per backend."""
    entries = (
        tag(
            "label",
            tag(
                "input",
                type="checkbox",
                checked="",
                value=str(source.index(label)),
                class_="scripted",
                hidden="",
            ),
            sample(source.index(label)),
            tag("span", label),
        )
        for label in names
    )
    return tag("fieldset", tag("legend", "Backends"), join(entries), id="show")
