"""Recorded sessions as tables, for terminal, Markdown and page: how they ended, and calls by depth."""

from collections.abc import Iterator

from harness.model import Summary
from harness.report.text import Table, or_unknown, plain
from harness.report.view import Group, Row, groups, point_words

_ENDED = ("backend", "sessions", "ended", "failed", "cut")
_DEPTHS = ("backend", "prompt up to", "calls", "TTFT p50 ms", "TPOT p50 ms", "cached %")


def session_tables(summary: Summary) -> list[Table]:
    """Two for each load; none where no recorded sessions were replayed."""
    return [table for group in groups(summary) for table in _tables(group)]


def _tables(group: Group) -> Iterator[Table]:
    rows = [row for row in group.rows if any(cell.sessions for cell in row.cells)]
    if rows:
        where = point_words(group.point)
        yield Table(f"{where}: sessions of all repeats", _ENDED, list(map(_ended, rows)))
        depths = [line for row in rows for line in _by_depth(row)]
        yield Table(f"{where}: calls by tokens of their prompts, median of repeats", _DEPTHS, depths)


def _ended(row: Row) -> list[str]:
    counts = [cell.sessions for cell in row.cells if cell.sessions]
    sums = (sum(getattr(one, name) for one in counts) for name in ("planned", *_ENDED[2:]))
    return [plain(row.label), *map(str, sums)]


def _by_depth(row: Row) -> Iterator[list[str]]:
    names = dict.fromkeys(name for cell in row.usable for name in cell.by_depth or ())
    for name in sorted(names, key=lambda one: (one.endswith("k"), len(one), one)):
        found = [row.spread(f"by_depth.{name}.{path}") for path in ("ttft_ms.p50", "tpot_ms.p50")]
        cached = row.spread(f"by_depth.{name}.cached_share")
        calls = sum(cell.by_depth[name].requests for cell in row.usable if name in (cell.by_depth or {}))
        figures = [*(one.median if one else None for one in found), 100 * cached.median if cached else None]
        yield [plain(row.label), name, str(calls), *map(or_unknown, figures)]
