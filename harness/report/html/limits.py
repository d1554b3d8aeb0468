"""Whether the limits of the scenario were kept, and up to which load."""

from collections.abc import Iterator

from harness.model import CellResult, Limit, TestedLoad
from harness.model.figures import share_of
from harness.model.json_path import number_at
from harness.model.numbers import as_given, number, percent_of_all
from harness.report.findings.goodput_words import limit_words
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, details, section, table, tag
from harness.report.view import Row, groups, point_words
from harness.report.wording import NOT_KNOWN, or_unknown, plain
from harness.verdicts import capacity

EXPLAINED = "A limit is kept when the share it names was within it; a request without an answer never is."


def limits(source: Source) -> Html | None:
    """None if the scenario sets none."""
    parts = [*_capacity(source), *_kept(source)]
    return section("limits", "Were the limits kept?", tag("p", EXPLAINED), *parts) if parts else None


def _capacity(source: Source) -> Iterator[Html]:
    """The highest load that kept to the limits, if it was searched for, and every load that was tried."""
    for result in source.summary.capacity or ():
        yield tag("p", tag("strong", f"Capacity: {capacity.words(result)}"))
        rows = (
            [
                as_given(load.value),
                f"{load.kept} of {load.runs}",
                NOT_KNOWN if load.attainment is None else percent_of_all(load.attainment),
                or_unknown(load.requests_per_s),
                _why(load),
            ]
            for load in result.tested
        )
        head = [str(result.kind), "runs that kept them", "good requests, %", "answers per s", "why not"]
        caption = f"{result.label}: every load that was tried"
        yield details(caption, table(caption, head, rows, class_="numbers"))


def _why(load: TestedLoad) -> str:
    why = ": ".join(filter(None, ("saturated" if load.saturated else "", load.why)))
    return "; ".join(filter(None, (why, capacity.left_out_words(load))))


def _kept(source: Source) -> Iterator[Html]:
    rows = [
        (row.label, [source.name(row.label), point_words(group.point), *limit])
        for group in groups(source.summary)
        for row in group.rows
        for limit in _limits_of(row)
    ]
    if rows:
        head = ["backend", "load", "limit", "within it, %", "kept", "95% upper bound, ms"]
        yield backend_table(source, "Limits of the scenario, first repeat", head, rows)


def _limits_of(row: Row) -> Iterator[list[str]]:
    slo = row.usable[0].slo if row.usable else None
    for limit in slo.limits if slo else ():
        kept = tag("span", "yes", class_="faster") if limit.met else tag("span", "no", class_="slower")
        within = percent_of_all(limit.within, share_of(limit.share))
        yield [limit_words(limit), within, kept, _bound(row.usable[0], limit)]


def _bound(cell: CellResult, limit: Limit) -> str:
    """The bound below which the percentile lies with 95% confidence, or why it is not known."""
    path = f"{limit.metric}.{limit.share}_upper"
    value = number_at(cell, path)
    if value is not None:
        return number(value)
    return plain(cell.null_reasons.get(path) or NOT_KNOWN)
