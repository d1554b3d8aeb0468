"""The columns of the result table, whatever prints it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from harness.metrics.distribution import NEVER
from harness.model import METRICS, PERCENTILES, WITHOUT_TEXT, Metric
from harness.model.metric import Column as Wanted
from harness.model.metric import Presence
from harness.model.numbers import percent_apart
from harness.report.view import Row, Spread, limits_ms
from harness.report.wording import NOT_KNOWN

GAP = 2  # characters between two columns of text
# What a narrow table keeps, most important first; other columns are the first to go.
KEPT = (
    "ttft_ms.p50",
    "output_tokens_per_s",
    "tpot_ms.p50",
    "e2e_ms.p50",
    "requests_per_s",
    "ttft_ms.p90",
    "prefix_cache_hit_rate",
    "ttft_ms.p99",
)


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
    """The columns for these rows. An optional one needs a value somewhere; those that vectors and scores
    cannot have are left out."""
    whole = bool(rows) and all(cell.conditions.api in WITHOUT_TEXT for row in rows for cell in row.cells)
    return [column for column in columns(rows) if _has_place(column, rows, whole=whole)]


def columns(rows: Sequence[Row]) -> list[Column]:
    """All that a table may have, with the percentiles that the scenario limits."""
    found = list(COLUMNS)
    for path in limits_ms(rows):
        name, _, statistic = path.partition(".")
        if METRICS[name].columns and all(column.path != path for column in found):
            metric = replace(METRICS[name], columns=(Wanted(statistic=statistic),))
            lower = {f"{name}.{below}" for below in PERCENTILES[: PERCENTILES.index(statistic)]}
            after = max((index for index, column in enumerate(found, 1) if column.path in lower), default=0)
            found[after:after] = _columns(metric)
    return found


def _has_place(column: Column, rows: Sequence[Row], *, whole: bool) -> bool:
    metric = METRICS.get(column.path.partition(".")[0])
    if whole and metric is not None and metric.of_text:
        return False
    if column.presence == "without text" and not whole:
        return False
    return column.presence == "always" or known(column, rows) or any(never(column, row) for row in rows)


def never(column: Column, row: Row) -> bool:
    """Whether a figure that only some requests have is unknown because they never got there."""
    return column.presence == "where it applies" and row.why_unknown(column.path).endswith(NEVER)


def fitting(rows: Sequence[Row], room: int, first: Sequence[str]) -> tuple[list[Column], list[Column]]:
    """The columns that fit into `room` characters, in the order of the whole table, and those left out.

    `first`: paths that are kept before all others. Validity is always there, and errors if there are any.
    Columns without a figure make room for those that have some.
    """
    drawn = shown(rows)
    wanted = dict.fromkeys((*limits_ms(rows), *first))
    ranks = {path: rank for rank, path in enumerate(dict.fromkeys((*wanted, *KEPT)))}

    def rank(column: Column) -> float:
        if column.title == "validity" or (column.title == "errors" and any(_faults(row) for row in rows)):
            return -1
        if column.presence == "when asked for" and column.path not in first:
            return len(first) - 0.5
        empty = bool(column.path) and column.path not in wanted and not known(column, rows)
        return ranks.get(column.path, len(ranks)) + empty * len(ranks)

    kept: set[int] = set()
    for column in sorted(drawn, key=rank):
        size = width(column, rows)
        if rank(column) < 0 or size <= room:
            kept.add(id(column))
            room -= size
    return [candidate for candidate in drawn if id(candidate) in kept], [
        candidate for candidate in drawn if id(candidate) not in kept
    ]


def width(column: Column, rows: Sequence[Row]) -> int:
    """Includes the gap before it."""
    return GAP + max(map(len, (*column.heads, *(column.entry(row).text for row in rows))))


def known(column: Column, rows: Sequence[Row]) -> bool:
    return any(row.spread(column.path) or row.pooled(column.path) for row in rows)


def _entry(path: str, metric: Metric, row: Row) -> Entry:
    spread = row.spread(path)
    if spread is None:
        return _pooled(row.pooled(path), metric)
    return Entry(metric.figure(spread.median), _range(spread, metric), _spread(spread))


def _pooled(interval: Sequence[float] | None, metric: Metric) -> Entry:
    """The interval of the requests of all repeats together."""
    if interval is None:
        return Entry(NOT_KNOWN)
    low, middle, high = map(metric.figure, interval)
    return Entry(middle, f"pooled, 95%: {low}–{high}", "pooled")


def _range(spread: Spread, metric: Metric) -> str:
    low, high = metric.figure(spread.low), metric.figure(spread.high)
    return f"{low}–{high}" if low != high else ""


def _spread(spread: Spread) -> str:
    """Empty if every repeat has the same value, or if they are around zero."""
    far = max(spread.high - spread.median, spread.median - spread.low)
    if not far or not spread.median:
        return ""
    share = 100 * far / abs(spread.median)
    return f"±{share:.0f}%" if share >= 1 else "±<1%"


def _with_ideal(metric: Metric, row: Row) -> Entry:
    """The measured value, next to the best that the workload allows."""
    measured, ideal = row.spread(metric.name), row.median(metric.ideal)
    if measured is None:
        return Entry(NOT_KNOWN)
    ideal_text = "" if ideal is None else f" ({percent_apart(ideal)})"
    return Entry(f"{percent_apart(measured.median)}{ideal_text}", _range(measured, metric), _spread(measured))


def _errors(row: Row) -> Entry:
    """Failed and dropped of all repeats, INVALID ones too: a fault is a fault. What never became due is not
    counted: where the time ran out, the share would look small."""
    faults = _faults(row)
    due = sum(cell.requests.due for cell in row.cells)
    return Entry(f"{faults}/{due}" if faults else "0")


def _faults(row: Row) -> int:
    return sum(cell.requests.failed + cell.requests.dropped for cell in row.cells)


def _validity(row: Row) -> Entry:
    worst, reasons = row.validity()
    some = f" {len(reasons)}/{len(row.cells)}" if len(reasons) < len(row.cells) else ""
    return Entry(f"{worst}{some}", verdict=worst)


def _columns(metric: Metric) -> Iterator[Column]:
    for wanted in metric.columns:
        path = f"{metric.name}.{wanted.statistic}" if wanted.statistic else metric.name
        first, second, unit = wanted.head or (metric.short, wanted.statistic, metric.unit)
        title, entry = f"{first} {second}".strip(), partial(_entry, path, metric)
        if metric.ideal:
            ideal_head = f"({METRICS[metric.ideal].short})"
            heads, entry = (first, f"{second} {unit}", ideal_head), partial(_with_ideal, metric)
            yield Column(title, f"{unit} {ideal_head}", heads, entry, path, wanted.presence)
        else:
            yield Column(title, unit, (first, second, unit), entry, path, wanted.presence)


COLUMNS = (
    *(column for metric in METRICS.values() for column in _columns(metric)),
    Column("errors", "", ("errors", "", ""), _errors),
    Column("validity", "", ("validity", "", ""), _validity),
)
