"""What stands in the columns of the result table, whatever it is printed with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from harness.report.text import NOT_KNOWN, number
from harness.report.view import Row, Spread

Presence = Literal["always", "when known", "when asked for"]


@dataclass(frozen=True, slots=True)
class Entry:
    text: str
    range: str = ""  # lowest and highest repeat
    spread: str = ""  # the same as the farther one's distance: `±3%`
    verdict: str = ""  # of the validity column


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    unit: str
    heads: tuple[str, str, str]  # the same on three narrow lines
    entry: Callable[[Row], Entry]
    path: str = ""  # in a cell of summary.json
    presence: Presence = "always"


def shown(rows: Sequence[Row]) -> list[Column]:
    """Columns for these rows: those that are not always there need one value somewhere."""
    return [column for column in COLUMNS if column.presence == "always" or known(column, rows)]


def known(column: Column, rows: Sequence[Row]) -> bool:
    return any(row.spread(column.path) or column.path in row.pooled for row in rows)


def _entry(path: str, scale: float, row: Row) -> Entry:
    spread = row.spread(path)
    if spread is None:
        return _pooled(row.pooled.get(path), scale)
    return Entry(number(spread.median * scale), _range(spread, scale), _spread(spread))


def _pooled(interval: Sequence[float] | None, scale: float) -> Entry:
    """Of the requests of all repeats together."""
    if interval is None:
        return Entry(NOT_KNOWN)
    low, middle, high = (number(value * scale) for value in interval)
    return Entry(middle, f"pooled, 95 %: {low}–{high}", "pooled")


def _range(spread: Spread, scale: float) -> str:
    low, high = number(spread.low * scale), number(spread.high * scale)
    return f"{low}–{high}" if low != high else ""


def _spread(spread: Spread) -> str:
    """Empty where every repeat has the same value, or they are around zero."""
    far = max(spread.high - spread.median, spread.median - spread.low)
    if not far or not spread.median:
        return ""
    share = 100 * far / abs(spread.median)
    return f"±{share:.0f}%" if share >= 1 else "±<1%"


def _cache(row: Row) -> Entry:
    """Percent measured, beside it what the workload allows at best."""
    hit, ideal = row.spread("prefix_cache_hit_rate"), row.spread("prefix_cache_ideal")
    if hit is None:
        return Entry(NOT_KNOWN)
    beside = "" if ideal is None else f" ({100 * ideal.median:.0f})"
    return Entry(f"{100 * hit.median:.0f}{beside}", _range(hit, 100.0), _spread(hit))


def _errors(row: Row) -> Entry:
    """Failed and dropped of all repeats, INVALID ones too: a fault is a fault."""
    faults = sum(cell.requests.failed + cell.requests.dropped for cell in row.cells)
    planned = sum(cell.requests.planned for cell in row.cells)
    return Entry(f"{faults}/{planned}" if faults else "0")


def _validity(row: Row) -> Entry:
    worst, count = row.validity
    return Entry(worst if count == len(row.cells) else f"{worst} {count}/{len(row.cells)}", verdict=worst)


def _value(
    name: str, stat: str, unit: str, path: str, presence: Presence = "always", scale: float = 1.0
) -> Column:
    title = f"{name} {stat}".strip()
    return Column(title, unit, (name, stat, unit), partial(_entry, path, scale), path, presence)


COLUMNS = (
    _value("TTFT", "p50", "ms", "ttft_ms.p50"),
    _value("TTFT", "p90", "ms", "ttft_ms.p90"),
    _value("TTFT", "p99", "ms", "ttft_ms.p99", "when known"),
    _value("ITL", "p50", "ms", "itl_ms.p50"),
    _value("TPOT", "p50", "ms", "tpot_ms.p50"),
    _value("E2E", "p50", "ms", "e2e_ms.p50"),
    _value("output", "", "tok/s", "output_tokens_per_s"),
    _value("done", "", "req/s", "requests_per_s"),
    _value("goodput", "", "req/s", "goodput_requests_per_s", "when asked for"),
    Column("cache hit", "% (ideal)", ("cache", "hit %", "(ideal)"), _cache, "prefix_cache_hit_rate"),
    _value("valid", "form", "%", "structured_valid_rate", "when asked for", 100.0),
    _value("valid", "calls", "%", "tool_call_valid_rate", "when asked for", 100.0),
    _value("right", "labels", "%", "label_accuracy", "when asked for", 100.0),
    _value("cost", "1M tok", "", "cost_per_million_output_tokens", "when asked for"),
    _value("energy", "", "J/tok", "joules_per_output_token", "when asked for"),
    Column("errors", "", ("errors", "", ""), _errors),
    Column("validity", "", ("validity", "", ""), _validity),
)
