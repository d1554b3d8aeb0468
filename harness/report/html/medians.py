"""A row per backend and load: what is read first, with the cells folded behind it."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.model.numbers import counted, number
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, details, join, tag
from harness.report.view import Group, Row, groups, kind_and_value, repeats
from harness.report.wording import NOT_KNOWN

Shown = Callable[[float], str]


def where(source: Source, group: Group, row: Row) -> Html:
    """`vllm, concurrency 8`: the label of a row."""
    return join([source.name(row.label), f", {kind_and_value(group.point)}"])


def every_row(source: Source) -> Iterator[tuple[Group, Row]]:
    return ((group, row) for group in groups(source.summary) for row in group.rows)


def of_repeats(source: Source) -> str:
    return ", medians of the repeats" if repeats(source.summary) > 1 else ""


def median(row: Row, path: str, shown: Shown = number) -> Html:
    """Leaves out repeats that are INVALID."""
    spread = row.spread(path)
    if spread is None:
        return tag("span", NOT_KNOWN, class_="unknown", title=row.why_unknown(path))
    return tag("span", shown(spread.median))


def medians(
    source: Source, caption: str, columns: Mapping[str, str], rows: Sequence[tuple[Group, Row]]
) -> Html:
    """`columns`: path in a cell → heading."""
    cells = (
        (row.label, [where(source, group, row), *(median(row, path) for path in columns)])
        for group, row in rows
    )
    heads = ["backend, load", *columns.values()]
    return backend_table(source, f"{caption}{of_repeats(source)}", heads, cells, "numbers")


def folded(cells: int, *content: str | None) -> Html:
    return details(f"Cell by cell: {counted(cells, 'cell')}", *content)
