"""Whether the limits that the scenario sets were kept."""

from collections.abc import Iterator

from harness.report.html.source import Source
from harness.report.html.tags import Html, section, table, tag
from harness.report.text import number
from harness.report.view import Row, groups, point_words

EXPLAINED = "A limit is kept when the share it names was within it; a request without an answer never is."


def limits(source: Source) -> Html | None:
    """None where the scenario sets none."""
    rows, owners = [], []
    for group in groups(source.summary):
        for row in group.rows:
            for limit in _limits_of(row):
                rows.append([source.name(row.label), point_words(group.point), *limit])
                owners.append(str(source.index(row.label)))
    if not rows:
        return None
    head = ["backend", "load", "limit", "within it, %", "kept"]
    made = table("Limits of the scenario, first repeat", head, rows, owners)
    return section("limits", "Were the limits kept?", tag("p", EXPLAINED), made)


def _limits_of(row: Row) -> Iterator[list[str]]:
    slo = row.usable[0].get("slo") if row.usable else None
    for limit in (slo or {}).get("limits") or ():
        kept = tag("span", "yes", class_="faster") if limit["met"] else tag("span", "no", class_="slower")
        name = f"{limit['metric'].removesuffix('_ms')} {limit['share']} ≤ {number(limit['limit_ms'])} ms"
        yield [name, number(100 * limit["within"]), kept]
