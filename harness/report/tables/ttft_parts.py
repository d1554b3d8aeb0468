"""The parts of the time to the first token, by the engine's own clock."""

from statistics import median

from harness.model import Summary
from harness.report.view import Row, groups, point_words
from harness.report.wording import NOT_KNOWN, Table, or_unknown, plain

_HEAD = ("load, backend", "TTFT ms", "queue", "engine", "rest")
_PARTS = ("client_ms", "queue_ms", "engine_ms", "rest_ms")


def ttft_tables(summary: Summary) -> list[Table]:
    """One with a row for each load and backend whose engine counts its first tokens."""
    rows = [
        [plain(f"{point_words(group.point)}, {row.label}"), *figures]
        for group in groups(summary)
        for row in group.rows
        if (figures := _figures(row))
    ]
    title = (
        "mean TTFT of all answers, warm-up included, in parts: the engine's queue, the engine, and the rest "
        "(HTTP, chat template, network, client)"
    )
    return [Table(title, _HEAD, rows)] if rows else []


def _figures(row: Row) -> list[str]:
    """Medians over the repeats."""
    parts = [cell.ttft_parts for cell in row.usable if cell.ttft_parts is not None]
    if not parts:
        return []
    columns = ([getattr(each, name) for each in parts] for name in _PARTS)
    return [NOT_KNOWN if None in column else or_unknown(median(column)) for column in columns]
