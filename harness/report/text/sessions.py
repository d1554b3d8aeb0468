"""Recorded sessions as tables, for terminal, Markdown and page: how they ended, and calls by depth."""

import re
from collections.abc import Iterator

from harness.model import CellResult, Summary
from harness.report.view import Group, Row, groups, point_words
from harness.report.wording import Table, or_unknown, plain

_ENDED = ("backend", "sessions", "ended", "failed", "cut")
_DEPTH = re.compile(r"\d+k?")
_DEPTHS = ("backend", "up to tokens", "calls", "TTFT p50 ms", "TPOT p50 ms", "cached %")


def session_tables(summary: Summary) -> list[Table]:
    """Tables per load: how recorded sessions ended, and calls by depth if there are several depths."""
    return [table for group in groups(summary) for table in _tables(group)]


def _tables(group: Group) -> Iterator[Table]:
    rows = [row for row in group.rows if any(cell.sessions for cell in row.cells)]
    where = point_words(group.point)
    if rows:
        yield Table(f"{where}: sessions of all repeats", _ENDED, list(map(_ended, rows)))
    if depths := [line for row in group.rows for line in _by_depth(row)]:
        yield Table(f"{where}: by depth of the context, median of repeats", _DEPTHS, depths)


def _key(cell: CellResult) -> str:
    """The key of the classes that are depths: of recorded calls, or of --depth."""
    deep = cell.by_kind and all(map(_DEPTH.fullmatch, cell.by_kind))
    return "by_kind" if deep and cell.by_depth is None else "by_depth"


def _ended(row: Row) -> list[str]:
    counts = [cell.sessions for cell in row.cells if cell.sessions]
    sums = (sum(getattr(count, name) for count in counts) for name in ("planned", *_ENDED[2:]))
    return [plain(row.label), *map(str, sums)]


def _by_depth(row: Row) -> Iterator[list[str]]:
    key = next((_key(cell) for cell in row.usable), "by_depth")
    classes = [getattr(cell, key) or {} for cell in row.usable]
    names = dict.fromkeys(name for depth in classes for name in depth)
    for name in sorted(names, key=_tokens):
        found = [row.spread(f"{key}.{name}.{path}") for path in ("ttft_ms.p50", "tpot_ms.p50")]
        cached = row.spread(f"{key}.{name}.cached_share")
        calls = sum(depth[name].requests for depth in classes if name in depth)
        figures = [
            *(depth.median if depth else None for depth in found),
            100 * cached.median if cached else None,
        ]
        yield [plain(row.label), name, str(calls), *map(or_unknown, figures)]


def _tokens(depth: str) -> int:
    return int(depth.removesuffix("k")) * (1024 if depth.endswith("k") else 1)
