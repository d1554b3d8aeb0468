"""What each of several URLs did, as tables: for the terminal, for Markdown and for the page."""

from harness.model import Replica, Summary
from harness.report.text import NOT_KNOWN, Table, or_unknown, plain
from harness.report.view import cell_name

_HEAD = ("URL", "requests", "share %", "errors", "TTFT p50 ms", "TTFT p99 ms", "output tok/s")


def replica_tables(summary: Summary) -> list[Table]:
    """One for each cell whose backend has several URLs; of an INVALID one counts only, no figures."""
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
    share = None if replica.share is None else 100 * replica.share
    figures = (replica.ttft_ms.p50, replica.ttft_ms.p99, replica.output_tokens_per_s)
    if withheld:
        figures = (None, None, None)
    return [
        plain(replica.url),
        str(replica.requests),
        or_unknown(share),
        str(replica.failed),
        *map(or_unknown, figures),
    ]


def _index(fairness: float | None) -> str:
    """To three places: what tells from 1 is small."""
    return NOT_KNOWN if fairness is None else f"{fairness:.3f}"
