"""Says which classes of a cell's requests are depths of the context: of recorded calls, or of --depth."""

import re

from harness.metrics.classes import size_of
from harness.model import CellResult
from harness.report.view import Row

_DEPTH = re.compile(r"\d+k?")


def depths(row: Row) -> dict[str, int]:
    """Returns the paths of these classes, such as `by_depth.4k`, with their tokens, the shallowest first."""
    found = {path: size_of(name) for cell in row.usable for path, name in _classes(cell)}
    return dict(sorted(found.items(), key=lambda entry: entry[1]))


def _classes(cell: CellResult) -> list[tuple[str, str]]:
    if cell.by_depth is not None:
        return [(f"by_depth.{name}", name) for name in cell.by_depth]
    kinds = cell.by_kind or {}
    return [(f"by_kind.{name}", name) for name in kinds] if all(map(_DEPTH.fullmatch, kinds)) else []
