"""Limits of [slo] as a gate: which backend keeps which of them at each load of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.model import CellResult, GateKind, GateRow, Limit, LoadPoint, Summary
from harness.model.figures import share_of
from harness.model.grouping import grouped
from harness.model.json_path import number_at
from harness.model.measures import measure
from harness.model.numbers import as_given, counted, number, percent_of_all
from harness.validity import blame
from harness.verdicts.slo_check import UNKNOWN_LATENCY


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """One limit of one backend at one load."""

    label: str
    load: LoadPoint
    words: str  # the limit, as in `TTFT p95 ≤ 500 ms`
    row: GateRow | None  # what a gate fails on; None: every valid repeat keeps the limit


def limit_checks(
    summary: Summary, slo: Mapping[str, Mapping[str, float]], planned: Iterable[tuple[str, LoadPoint]]
) -> Iterator[LimitCheck]:
    """Yields a check for each limit of `slo` at each load that was `planned` of a backend, once however many
    repeats were. What no valid repeat measured is not kept. A repeat that failed requests made INVALID misses
    each limit that they alone are too many for.
    """
    cells = grouped(((cell.label, cell.point), cell) for cell in summary.cells)
    for label, load in dict.fromkeys(planned):
        for metric, limits in slo.items():
            for share, limit_ms in limits.items():
                path = f"{metric}.{share}"
                found = _missed(cells.get((label, load), ()), path, limit_ms)
                row = found and GateRow(
                    kind=found[0], run=summary.run, label=label, load=load, metric=path, why=found[1]
                )
                yield LimitCheck(label, load, measure(path).at_most(limit_ms), row)


def _missed(cells: Sequence[CellResult], path: str, limit_ms: float) -> tuple[GateKind, str] | None:
    """The kind of the row and its figures: those of the repeats that miss the limit."""
    limits = [
        (cell, limit)
        for cell in cells
        for limit in (cell.slo.limits if cell.slo else ())
        if f"{limit.metric}.{limit.share}" == path
        and limit.limit_ms == limit_ms
        and (not cell.invalid or (not limit.met and _failed_too_many(cell, limit)))
    ]
    if not limits:
        return "missing", _why_missing(cells)
    missed = [(cell, limit) for cell, limit in limits if not limit.met]
    if not missed:
        return None
    values = [value for cell, _ in missed if (value := number_at(cell, path)) is not None]
    value = median(values) if values else 0.0
    if value > limit_ms:
        shown = f"{number(value, limit_ms)} ms"
    else:  # failed requests miss it, or they are too few to know the percentile of
        within = median(limit.within for _, limit in missed)
        shown = f"{percent_of_all(within, share_of(missed[0][1].share))}% of the requests inside"
    many = f", in {len(missed)} of {counted(len(limits), 'repeat')}" if len(limits) > 1 else ""
    return "limit", f"{shown}, limit {as_given(limit_ms)} ms{many}"


def _failed_too_many(cell: CellResult, limit: Limit) -> bool:
    """Whether the failed requests of an INVALID repeat alone miss the limit, and the server is to blame."""
    blamed, asked = blame(cell.validity), cell.slo.requests if cell.slo else 0
    others = max(asked - cell.requests.failed, 0)
    too_many = asked > 0 and others / asked < share_of(limit.share)
    return too_many and blamed is not None and blamed[0] == "engine"


def _why_missing(cells: Sequence[CellResult]) -> str:
    if not cells:
        return "not measured"
    return "no valid repeat" if all(cell.invalid for cell in cells) else UNKNOWN_LATENCY
