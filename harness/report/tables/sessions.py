"""Recorded sessions: how they ended, and calls by depth."""

from collections.abc import Iterator

from harness.model import Summary
from harness.report.depths import depths
from harness.report.view import Group, Row, groups, point_words
from harness.report.wording import Table, or_unknown, percent_or_unknown, plain

_ENDED = ("backend", "sessions", "ended", "failed", "cut off", "not begun")
_DEPTHS = ("backend", "up to tokens", "calls", "TTFT p50 ms", "TPOT p50 ms", "cached %")


def session_tables(summary: Summary) -> list[Table]:
    """Tables per load: how recorded sessions ended, and calls by depth if there are several depths."""
    return [table for group in groups(summary) for table in _tables(group)]


def _tables(group: Group) -> Iterator[Table]:
    rows = [row for row in group.rows if any(cell.sessions for cell in row.cells)]
    where = point_words(group.point)
    if rows:
        yield Table(f"{where}: sessions of all repeats", _ENDED, list(map(_ended, rows)))
    if lines := [line for row in group.rows for line in _by_depth(row)]:
        yield Table(f"{where}: by depth of the context, median of repeats", _DEPTHS, lines)


def _ended(row: Row) -> list[str]:
    counts = [cell.sessions for cell in row.cells if cell.sessions]
    planned, ended, failed, cut, not_begun = (
        sum(getattr(count, name) for count in counts)
        for name in ("planned", "ended", "failed", "cut", "not_begun")
    )
    return [plain(row.label), *map(str, (planned, ended, failed, cut - not_begun, not_begun))]


def _by_depth(row: Row) -> Iterator[list[str]]:
    for path in depths(row):
        key, _, name = path.partition(".")
        classes = [getattr(cell, key) or {} for cell in row.usable]
        calls = sum(of_cell[name].requests for of_cell in classes if name in of_cell)
        figures = [or_unknown(row.median(f"{path}.{metric}")) for metric in ("ttft_ms.p50", "tpot_ms.p50")]
        share = percent_or_unknown(row.median(f"{path}.cached_share"))
        yield [plain(row.label), name, str(calls), *figures, share]
