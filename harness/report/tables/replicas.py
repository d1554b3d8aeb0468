"""Each of several URLs."""

from harness.model import Replica, Summary
from harness.report.view import cell_name
from harness.report.wording import NOT_KNOWN, Table, or_unknown, percent_or_unknown, plain

_HEAD = ("URL", "requests", "share %", "errors", "TTFT p50 ms", "TTFT p99 ms",
         "TPOT p50 ms", "E2E p50 ms", "cached %", "output tok/s")  # fmt: skip


def replica_tables(summary: Summary) -> list[Table]:
    """One per cell whose backend has several URLs. An INVALID one has counts only."""
    return [
        Table(
            f"{cell_name(cell)}: by URL, {cell.replicas.balance}; fairness "
            f"{_index(None if cell.invalid else cell.replicas.fairness)} (Jain's index of output tok/s)",
            _HEAD,
            [_row(replica, withheld=cell.invalid) for replica in cell.replicas.urls],
        )
        for cell in summary.cells
        if cell.replicas
    ]


def _row(replica: Replica, *, withheld: bool) -> list[str]:
    figures = (replica.ttft_ms.p50, replica.ttft_ms.p99, replica.tpot_ms.p50, replica.e2e_ms.p50)
    return [
        plain(replica.url),
        str(replica.requests),
        percent_or_unknown(replica.share),
        str(replica.failed),
        *(or_unknown(None if withheld else figure) for figure in figures),
        percent_or_unknown(None if withheld else replica.cached_share),
        or_unknown(None if withheld else replica.output_tokens_per_s),
    ]


def _index(fairness: float | None) -> str:
    """Three places: the difference from 1 is small."""
    return NOT_KNOWN if fairness is None else f"{fairness:.3f}"
