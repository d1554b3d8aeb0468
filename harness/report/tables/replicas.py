"""Each of several URLs."""

from harness.model import WITHOUT_TEXT, CellResult, Replica, Replicas, Summary
from harness.report.view import cell_name
from harness.report.wording import NOT_KNOWN, Table, or_unknown, percent_or_unknown, plain

_COUNTS = ("URL", "requests", "share %", "errors")
_OF_TEXT = ("TTFT p50 ms", "TTFT p99 ms", "TPOT p50 ms", "E2E p50 ms", "cached %", "output tok/s")
_OF_WHOLE = ("E2E p50 ms",)  # answers that are no text have no first token and no tokens/s


def replica_tables(summary: Summary) -> list[Table]:
    """One per cell whose backend has several URLs. An INVALID one has counts only."""
    return [_table(cell, cell.replicas) for cell in summary.cells if cell.replicas]


def _table(cell: CellResult, by_url: Replicas) -> Table:
    whole, title = cell.conditions.api in WITHOUT_TEXT, f"{cell_name(cell)}: by URL, {by_url.balance}"
    if not whole:
        fairness = None if cell.invalid else by_url.fairness
        title += f"; fairness {_index(fairness)} (Jain's index of output tok/s)"
    rows = [_row(replica, whole=whole, withheld=cell.invalid) for replica in by_url.urls]
    return Table(title, _COUNTS + (_OF_WHOLE if whole else _OF_TEXT), rows)


def _row(replica: Replica, *, whole: bool, withheld: bool) -> list[str]:
    counts = str(replica.requests), percent_or_unknown(replica.share), str(replica.failed)
    e2e = or_unknown(None if withheld else replica.e2e_ms.p50)
    if whole:
        return [plain(replica.url), *counts, e2e]
    figures = (replica.ttft_ms.p50, replica.ttft_ms.p99, replica.tpot_ms.p50)
    return [
        plain(replica.url),
        *counts,
        *(or_unknown(None if withheld else figure) for figure in figures),
        e2e,
        percent_or_unknown(None if withheld else replica.cached_share),
        or_unknown(None if withheld else replica.output_tokens_per_s),
    ]


def _index(fairness: float | None) -> str:
    """Three places: the difference from 1 is small."""
    return NOT_KNOWN if fairness is None else f"{fairness:.3f}"
