"""Cell by cell: whether it can be trusted and why, every statistic, and what the models said."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.model import PERCENTILES, STATISTICS, VERDICTS, WITHOUT_TEXT, CellResult, family
from harness.model.json_path import number_at, value_at
from harness.model.measures import measure
from harness.model.metric import OF_AUDIO
from harness.model.numbers import counted, number
from harness.report.findings.notes import reason_text
from harness.report.html.medians import every_row, folded, median, medians, of_repeats, where
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, details, hint, items, join, section, tag
from harness.report.view import Group, cell_name, groups, labels, point_words
from harness.report.wording import NOT_KNOWN, capital, listing, plain

BOUNDS = {f"{name}_upper": f"{name} at most" for name in PERCENTILES}
BOUNDED = "upper bounds of 95% confidence"
RATES = {metric.name: measure(metric.name).title for metric in family("rate")} | {"window_s": "window, s"}
CLIENT = {
    "slot_idle_share": "slots idle, of 1",
    "synchrony.index": "synchrony of the slots, of 1",
    "client.send_lag_ms.p50": "send lag, median ms",
    "client.send_lag_ms.max": "largest",
    "client.loop_lag_ms.p50": "loop lag, median ms",
    "client.loop_lag_ms.max": "largest",
    "client.busy_share": "client core busy, of 1",
}
PART, WHOLE = measure("ttft_ms.p50"), measure("e2e_ms.p50")
PARTS = {"by_turn": "turn", "by_kind": "kind of request"}
VERDICTS_EXPLAINED = (
    "Each cell is one backend at one load point in one repeat. SUSPECT: usable with the stated doubt. "
    "INVALID: the figures may be those of the load generator and not of the server, or too few requests "
    "succeeded; they enter neither the result table nor a curve."
)
ANSWERS_EXPLAINED = (
    "The first measured answer of up to three cells, cut. Answers that make no sense, or that differ between "
    "backends, mean that the backends did not do the same work."
)
ANSWER_CELLS, ANSWER_LIMIT = 3, 400
_VALUES = {*WITHOUT_TEXT} - {*OF_AUDIO}


def validity(source: Source) -> Html:
    cells = source.summary.cells
    head = ["cell", "verdict", "why", "answered", "failed", "dropped", *CLIENT.values()]
    rows = ((cell.label, [cell.cell, *_validity_row(cell)]) for cell in cells)
    every = backend_table(source, "Validity of every cell", head, rows)
    return section(
        "validity",
        "Can the numbers be trusted?",
        tag("p", tag("strong", counted_cells(cells)), " ", VERDICTS_EXPLAINED),
        _verdicts(source),
        folded(len(cells), every),
        _errors(source),
    )


def _verdicts(source: Source) -> Html:
    """Verdicts by backend and load, with the codes of the doubts."""
    rows = []
    for group, row in every_row(source):
        worst, _reasons = row.validity()
        codes = Counter(reason.code for cell in row.cells for reason in cell.validity.reasons)
        requests = [cell.requests for cell in row.cells]
        shown = [
            where(source, group, row),
            tag("span", _listed(row.cells), class_=worst.lower()),
            ", ".join(f"{code} ({count})" for code, count in codes.most_common()) or "every check passed",
            f"{sum(counts.ok for counts in requests)} of {sum(counts.due for counts in requests)}",
            str(sum(counts.failed for counts in requests)),
            str(sum(counts.dropped for counts in requests)),
        ]
        rows.append((row.label, shown))
    head = ["backend, load", "cells", "why (cells)", "answered", "failed", "dropped"]
    return backend_table(source, "Validity by backend and load", head, rows)


def _listed(cells: Sequence[CellResult]) -> str:
    counts = Counter(cell.validity.verdict for cell in cells)
    return listing([f"{counts[word]} {word}" for word in VERDICTS if counts[word]])


def counted_cells(cells: Sequence[CellResult]) -> str:
    return f"{counted(len(cells), 'cell')}: {_listed(cells)}." if cells else "No cell was measured."


def _validity_row(cell: CellResult) -> Iterator[str]:
    yield tag("span", cell.validity.verdict, class_=cell.validity.verdict.lower())
    reasons = cell.validity.reasons
    why = items(join([reason_text(reason), hint(reason.hint)]) for reason in reasons)
    yield why if reasons else "every check passed"
    counts = cell.requests
    yield f"{counts.ok} of {counts.due}"
    yield str(counts.failed)
    yield str(counts.dropped)
    for path in CLIENT:
        yield _number(cell, path)


def _errors(source: Source) -> Html | None:
    errors = [
        f"{cell}: {counted(count, 'request')}: {plain(error)}"
        for cell, taken in source.samples.items()
        for error, count in taken.errors.items()
    ]
    return details("Errors as they were received", items(errors)) if errors else None


def statistics(source: Source) -> Html:
    return section(
        "statistics", "Every statistic", *(_group(source, group) for group in groups(source.summary))
    )


def _group(source: Source, group: Group) -> Html:
    cells = [cell for row in group.rows for cell in row.cells]
    titles = {metric.name: measure(metric.name).title for metric in family("latency")}
    latencies = [
        _values(source, title, cells, {f"{name}.{key}": key for key in STATISTICS})
        for name, title in titles.items()
    ]
    bounds = [
        _values(source, f"{title}, {BOUNDED}", cells, paths)
        for name, title in titles.items()
        if (paths := {f"{name}.{key}": head for key, head in BOUNDS.items()})
        and any(number_at(cell, path) is not None for cell in cells for path in paths)
    ]
    rates = _values(source, "Rates", cells, RATES)
    parts = [_by(source, cells, field, what) for field, what in PARTS.items()]
    each = (*latencies, *bounds, rates, *parts)
    return details(capital(point_words(group.point)), *_medians(source, group), folded(len(cells), *each))


def _medians(source: Source, group: Group) -> Iterator[Html]:
    rows = []
    for metric in family("latency"):
        for row in group.rows:
            values = (median(row, f"{metric.name}.{key}") for key in STATISTICS)
            name = join([source.name(row.label), f" {measure(metric.name).title}"])
            rows.append((row.label, [name, *values]))
    yield backend_table(source, f"Latencies{of_repeats(source)}", ["backend", *STATISTICS], rows, "numbers")
    yield medians(source, "Rates", RATES, [(group, row) for row in group.rows])


def _by(source: Source, cells: Sequence[CellResult], field: str, what: str) -> Html | None:
    """TTFT by turn or by kind of request, E2E where answers come whole; None if there is only one."""
    kinds = list(dict.fromkeys(kind for cell in cells for kind in value_at(cell, field) or ()))
    if len(kinds) < 2:
        return None
    shown = WHOLE if any(cell.conditions.api in WITHOUT_TEXT for cell in cells) else PART
    title = f"{shown.name} by {what}, {shown.unit}"
    return _values(source, title, cells, {f"{field}.{kind}.{shown.path}": kind for kind in kinds})


def _values(source: Source, caption: str, cells: Sequence[CellResult], paths: Mapping[str, str]) -> Html:
    """One row per cell, INVALID ones included and named as such. `paths` gives each column its heading."""
    rows = ((cell.label, [cell_name(cell), *(_number(cell, path) for path in paths)]) for cell in cells)
    return backend_table(source, caption, ["cell", *paths.values()], rows, "numbers")


def _number(cell: CellResult, path: str) -> str:
    value = number_at(cell, path)
    if value is not None:
        return number(value)
    reason = cell.null_reasons.get(path)
    return f"{NOT_KNOWN} ({plain(reason)})" if reason else NOT_KNOWN


def answers(source: Source) -> Html | None:
    """One engine may answer sense and another nonsense to the same prompt; no number shows it.

    None of vectors and scores, and of imported answers, whose texts are not kept.
    """
    kept = [cell for cell in source.summary.cells if not cell.imported]
    if source.summary.cells and all(cell.conditions.api in _VALUES for cell in kept):
        return None
    parts = []
    for label in labels(source.summary):
        texts = [taken.answers[0] for taken in source.samples_of(label) if taken.answers][:ANSWER_CELLS]
        quotes = [tag("blockquote", plain(text, ANSWER_LIMIT)) for text in texts]
        body = quotes or [tag("p", "No answer.")]
        parts.append(tag("div", tag("h3", source.name(label)), *body, data_series=str(source.index(label))))
    return section("answers", "What the models said", tag("p", ANSWERS_EXPLAINED), *parts)
