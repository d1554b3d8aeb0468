"""Two figures against the load as bars of characters, for a terminal."""

from collections.abc import Iterator

from harness.model import Summary
from harness.model.measures import measure
from harness.model.numbers import number
from harness.report.view import Row, groups
from harness.report.wording import NOT_KNOWN, short_names

_FIGURES = ("output_tokens_per_s", "ttft_ms.p50")
_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDEST = 80
_NAME = 24
_VALUE = 7


def sketch(summary: Summary, width: int) -> str:
    """Fits `width` from 40 on, and is never wider than 80; "" if there are no two bars to compare."""
    rows = [(group.point.label, row) for group in groups(summary) for row in group.rows]
    return "\n".join(line for path in _FIGURES for line in _bars(path, rows, min(width, _WIDEST))).rstrip()


def _bars(path: str, rows: list[tuple[str, Row]], width: int) -> Iterator[str]:
    medians = [row.median(path) for _point, row in rows]
    most = max((median for median in medians if median is not None), default=0.0)
    if not most or len(rows) < 2:
        return
    yield measure(path).title
    cut = short_names((row.label for _point, row in rows), _NAME)
    names = [f"{point}  {cut[row.label]}" if len(cut) > 1 else point for point, row in rows]
    first = max(map(len, names))
    room = width - first - _VALUE - 4
    for name, median in zip(names, medians, strict=True):
        value = NOT_KNOWN if median is None else number(median)
        bar = "" if median is None else _bar(median / most * room)
        yield f"  {name.ljust(first)} {bar} {value}"
    yield ""


def _bar(length: float) -> str:
    eighths = max(round(8 * length), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
