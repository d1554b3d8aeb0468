"""summary.json by load point: one row per backend, repeats pooled.

Numbers of an INVALID cell describe the load generator, not the server, and never enter a pooled value.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from harness.model import (
    PERCENTILES,
    VERDICTS,
    Capacity,
    CellResult,
    Estimate,
    Lengths,
    LoadPoint,
    Price,
    Reason,
    Summary,
)
from harness.model import labels as in_order
from harness.model.grouping import grouped
from harness.model.json_path import number_at
from harness.model.numbers import as_given, counted, quotient
from harness.records.request_table import FREE
from harness.report.wording import listing

_ABOUT_EQUAL = 1.01  # mean lengths that a reader takes for the same
_FEW_LOADS = 2  # of more, a page folds all but the leading ones


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread over the repeats that reported a value."""

    median: float
    low: float
    high: float
    repeats: int


@dataclass(frozen=True, slots=True)
class Row:
    """Every repeat of one backend at one load point."""

    label: str
    cells: tuple[CellResult, ...]
    estimates: Mapping[str, Estimate] = field(default_factory=dict)  # by dotted path
    unit: str = "repeat"  # the name of a repeat in this run

    @property
    def usable(self) -> list[CellResult]:
        return [cell for cell in self.cells if not cell.invalid]

    def validity(self, metric: str = "") -> tuple[str, list[list[Reason]]]:
        """The worst verdict, and its reasons in each repeat that has it; of one value, or of whole cells."""
        judged = [cell.validity_of([metric]) if metric else cell.validity for cell in self.cells]
        worst = max((validity.verdict for validity in judged), key=VERDICTS.index)
        return worst, [
            [reason for reason in validity.reasons if reason.verdict == worst]
            for validity in judged
            if validity.verdict == worst
        ]

    def spread(self, path: str) -> Spread | None:
        """The spread of the value at a dotted path such as `ttft_ms.p50`; None if no usable repeat has it."""
        values = [value for cell in self.usable if (value := number_at(cell, path)) is not None]
        return Spread(median(values), min(values), max(values), len(values)) if values else None

    def median(self, path: str) -> float | None:
        spread = self.spread(path)
        return spread.median if spread else None

    def middle(self, path: str) -> float | None:
        """The figure of the table: the median of the repeats, or that of their pooled requests.

        None if neither is known.
        """
        found, pooled = self.median(path), self.pooled(path)
        return pooled[1] if found is None and pooled else found

    def pooled(self, path: str) -> tuple[float, float, float] | None:
        """The 95% interval of a percentile over the requests of all runs, where one run is too short."""
        estimate = self.estimates.get(path)
        return estimate.whole if estimate and estimate.method == "pooled" and estimate.runs > 1 else None

    def why_unknown(self, path: str) -> str:
        if not self.usable:
            return "withheld, the measurement is INVALID"
        whole = path.partition(".")[0]
        reasons = (cell.null_reasons for cell in self.usable)
        return next(
            (reason for nulls in reasons if (reason := nulls.get(path) or nulls.get(whole))), "not reported"
        )


@dataclass(frozen=True, slots=True)
class Group:
    point: LoadPoint
    rows: tuple[Row, ...]


def groups(summary: Summary) -> list[Group]:
    """Sorted by load point, closed loop before open; rows in the order in which the backends were first
    measured."""
    estimates = grouped(((estimate.load, estimate.label), estimate) for estimate in summary.estimates)
    unit, by_point = unit_of(summary), grouped((cell.point, cell) for cell in summary.cells)

    def rows(point: LoadPoint) -> Iterator[Row]:
        for label, mine in grouped((cell.label, cell) for cell in by_point[point]).items():
            found = {estimate.metric: estimate for estimate in estimates.get((point, label), ())}
            yield Row(label, tuple(mine), found, unit)

    return [Group(point, tuple(rows(point))) for point in sorted(by_point)]


def leading(summary: Summary, load_groups: Sequence[Group]) -> list[Group]:
    """The loads that a reader wants first: all of few, those that a search for the capacity found to be
    carried, else the highest.
    """
    if len(load_groups) <= _FEW_LOADS:
        return list(load_groups)
    carried = {_carried(capacity, load_groups) for capacity in summary.capacity or ()}
    return [group for group in load_groups if group.point in carried] or [load_groups[-1]]


def _carried(capacity: Capacity, load_groups: Sequence[Group]) -> LoadPoint | None:
    """The highest load that was measured and is within the capacity: that may lie between two loads."""
    if capacity.value is None:
        return None
    points = (group.point for group in load_groups if any(row.label == capacity.label for row in group.rows))
    kept = [point for point in points if point.kind == capacity.kind and point.value <= capacity.value]
    return max(kept, key=lambda point: point.value, default=None)


def limits_ms(rows: Iterable[Row]) -> dict[str, float]:
    """The limits of the scenario, by the path of the percentile that each is of."""
    slos = (cell.slo for row in rows for cell in row.usable)
    limits = next((slo.limits for slo in slos if slo is not None), ())
    return {f"{limit.metric}.{limit.share}": limit.limit_ms for limit in limits if limit.share in PERCENTILES}


def labels(summary: Summary) -> list[str]:
    """Every backend once, in the order in which they were first measured."""
    return in_order(summary.cells)


def first_cells(summary: Summary) -> dict[str, CellResult]:
    """The cell, by label, for what all cells of a backend share: title, track, version."""
    cells: dict[str, CellResult] = {}
    for cell in summary.cells:
        cells.setdefault(cell.label, cell)
    return cells


def unit_of(summary: Summary) -> str:
    """The name of a repeat: of engines that are up together it is a block."""
    return "repeat" if summary.verdict_rules.pairing == "starts" else "block"


def repeats_words(summary: Summary) -> str:
    """`3 to 7 repeats`: a run that stops by itself measures less of what is decided early, and a capacity
    search less of the loads that decide nothing."""
    most, unit = repeats(summary), unit_of(summary)
    counts = Counter((cell.label, cell.point) for cell in summary.cells)
    fewest = min(counts.values(), default=most)
    return counted(most, unit) if fewest == most else f"{fewest} to {most} {unit}s"


def asked_words(summary: Summary) -> str:
    """`prompts of 81 tokens on average, answers of 62 to 63 tokens`: the means of the cells, as the servers
    count them; *on average* unless the requests of a load are known to be alike and to end at their limit.

    Prompts are those of all turns. What no server counts is left out.
    """
    cells = [cell for cell in summary.cells if not cell.invalid]
    cards = (summary.workload_card or {}).values()
    prompts = [quotient(cell.input_tokens_per_s, cell.requests_per_s) for cell in cells]
    answers = [cell.conditions.output_tokens_mean for cell in cells]
    short = any(mean and mean * _ABOUT_EQUAL < card.output_tokens.min for mean in answers for card in cards)
    parts = (
        _lengths("prompts", prompts, _differ([card.input_tokens for card in cards])),
        _lengths("answers", answers, short or _differ([card.output_tokens for card in cards])),
        _free_words(cells),
    )
    return ", ".join(filter(None, parts))


def _free_words(cells: Sequence[CellResult]) -> str:
    """The part of the requests that are sent for the comparison with constrained ones: rates and costs are of
    both."""
    counts = Counter[bool]()
    for cell in cells:
        for kind, of_kind in (cell.answers.checks if cell.answers else {}).get("structured", {}).items():
            counts[kind == FREE] += int(of_kind["asked"] or 0)
    if not all(counts[free] for free in (True, False)):
        return ""
    return f"{counts[True] / counts.total():.0%} of them free"


def _differ(asked: Sequence[Lengths]) -> bool:
    """Whether lengths may differ; of files of other tools nothing is known."""
    return not asked or any(length.min < length.max for length in asked)


def _lengths(what: str, means: Sequence[float | None], differ: bool) -> str:
    counts = sorted(round(mean) for mean in means if mean)
    if not counts:
        return ""
    ends = (counts[0], counts[-1]) if counts[-1] > _ABOUT_EQUAL * counts[0] else (counts[len(counts) // 2],)
    average = " on average" if differ else ""
    return f"{what} of {' to '.join(f'{count:,}' for count in ends)} tokens{average}"


def repeats(summary: Summary) -> int:
    """Most repeats that any backend has at one load point."""
    return max((len(row.cells) for group in groups(summary) for row in group.rows), default=0)


def charged(summary: Summary) -> dict[Price, str]:
    """Each price with the backends that it is charged to, as `: a and b`; "" for the only price of a run."""
    by_label = dict.fromkeys((cell.cost.price, cell.label) for cell in summary.cells if cell.cost)
    prices = dict.fromkeys(price for price, _label in by_label)
    if len(prices) < 2:
        return dict.fromkeys(prices, "")
    return {price: f": {listing([label for other, label in by_label if other == price])}" for price in prices}


def point_words(point: LoadPoint) -> str:
    """Names the loop in any case: closed and open answer different questions."""
    value = as_given(point.value)
    if point.kind == "concurrency":
        return f"closed loop, concurrency {value}"
    if point.kind == "working-set":
        return f"working set of {value} times the KV cache" if point.value else "no prefix used twice"
    if point.kind == "trace":
        return f"trace replay, {value} times as fast" if point.value != 1 else "trace replay, at its own pace"
    if point.kind == "unknown":
        return "unknown load"
    return f"open loop, {value} requests/s"


def kind_and_value(point: LoadPoint) -> str:
    """`concurrency 8`: as the flags have it."""
    return f"{point.kind} {as_given(point.value)}"


def cell_name(cell: CellResult) -> str:
    """Includes its verdict if that is not VALID."""
    verdict = cell.validity.verdict
    return cell.cell if verdict == "VALID" else f"{cell.cell} ({verdict})"
