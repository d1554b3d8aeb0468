"""The SVG files of a run as parts of a page: themed, unique ids, a text for those who cannot see them."""

import re
from collections.abc import Sequence
from urllib.parse import quote

from harness.report.html.source import Source
from harness.report.html.tags import Html, join, section, tag
from harness.report.plots import GRID, INK, MUTED, PALETTE, PAPER, Picture

# Colours of the pictures → custom properties, so that they follow the reader's light or dark setting.
THEME = {
    INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", PAPER: "var(--paper)",
    **{color: f"var(--s{index})" for index, color in enumerate(PALETTE)},
}  # fmt: skip


def figures(source: Source) -> Html:
    drawn = (_figure(source, picture, svg, index) for index, (picture, svg) in enumerate(source.pictures))
    return section("pictures", "Pictures", tag("div", *drawn, class_="figures"))


def _figure(source: Source, picture: Picture, svg: str, index: int) -> Html:
    files = [
        tag("a", ending.upper(), href=quote(f"plots/{picture.name}.{ending}")) for ending in ("png", "svg")
    ]
    drawn = inline(svg, f"f{index}-", f"{picture.title}. {picture.description}")
    return tag(
        "figure",
        tag("div", drawn, class_="chart", tabindex="0", role="group", aria_label=picture.title),
        tag("figcaption", "As ", files[0], " or ", files[1]),
        data_series=str(source.index(picture.backend)) if picture.backend else None,
    )


def inline(svg: str, prefix: str, description: str) -> Html:
    """`svg` is one of our own pictures: matplotlib has escaped every name in it."""
    start = svg.index("<svg")
    body = svg[svg.index(">", start) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="series-(\d+)"', r'data-series="\1"', body)
    body = re.sub(r'\bid="', f'id="{prefix}', body)
    body = re.sub(r'(url\(|href=")#', rf"\g<1>#{prefix}", body)
    for color, variable in THEME.items():
        body = body.replace(f": {color.lower()}", f": {variable}")
    box = re.search(r'viewBox="[\d. ]+"', svg)
    opening = tag("svg", xmlns="http://www.w3.org/2000/svg", role="img", aria_label=description)
    head = opening.removesuffix("></svg>")
    return Html(f'{head} xmlns:xlink="http://www.w3.org/1999/xlink" {box[0] if box else ""}>{body.strip()}')


def hide_controls(source: Source, found: Sequence[str]) -> Html:
    """Hidden until the script is there to answer them."""
    boxes = (
        tag(
            "label",
            tag("input", type="checkbox", checked="", value=str(source.index(label))),
            source.name(label),
        )
        for label in found
    )
    return tag("fieldset", tag("legend", "Show backends"), join(boxes), id="show", hidden="")
