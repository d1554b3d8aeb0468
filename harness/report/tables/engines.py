"""What is behind the URLs of a backend: its replicas, its engines with roles, the parts of a first token."""

from collections.abc import Iterator
from statistics import median

from harness.model import WITHOUT_TEXT, CellResult, Replica, Replicas, Summary
from harness.report.view import Row, cell_name, groups, point_words
from harness.report.wording import NOT_KNOWN, Table, or_unknown, percent_or_unknown, plain

_COUNTS = ("URL", "requests", "share %", "errors")
_OF_TEXT = ("TTFT p50 ms", "TTFT p99 ms", "TPOT p50 ms", "E2E p50 ms", "cached %", "output tok/s")
_OF_WHOLE = ("E2E p50 ms",)  # answers that are no text have no first token and no tokens/s
_BY_ROLE = ("role", "engines", "prompt", "cached", "output", "run", "wait", "KV %",
         "TTFT ms", "E2E ms")  # fmt: skip
_TTFT_BY_ROLE = ("TTFT ms", "prefill", "decode", "of it transfer", "router, network")
_TTFT_PARTS = ("load, backend", "TTFT ms", "queue", "engine", "rest")
_PARTS = ("client_ms", "queue_ms", "engine_ms", "rest_ms")


def engine_tables(summary: Summary) -> Iterator[Table]:
    for tables in (replica_tables, role_tables, ttft_tables):
        yield from tables(summary)


def replica_tables(summary: Summary) -> list[Table]:
    """One per cell whose backend has several URLs. An INVALID one has counts only."""
    return [_by_url(cell, cell.replicas) for cell in summary.cells if cell.replicas]


def _by_url(cell: CellResult, by_url: Replicas) -> Table:
    whole, title = cell.conditions.api in WITHOUT_TEXT, f"{cell_name(cell)}: by URL, {by_url.balance}"
    if not whole:
        unknown = cell.invalid or by_url.fairness is None
        # Three places: the difference from 1 is small.
        fairness = NOT_KNOWN if unknown else f"{by_url.fairness:.3f}"
        title += f"; fairness {fairness} (Jain's index of output tok/s)"
    rows = [_replica(replica, whole=whole, withheld=cell.invalid) for replica in by_url.urls]
    return Table(title, _COUNTS + (_OF_WHOLE if whole else _OF_TEXT), rows)


def _replica(replica: Replica, *, whole: bool, withheld: bool) -> list[str]:
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


def role_tables(summary: Summary) -> list[Table]:
    """Two for each cell whose engines have roles; none of an INVALID one."""
    return [table for cell in summary.cells if cell.roles and not cell.invalid for table in _by_role(cell)]


def _by_role(cell: CellResult) -> list[Table]:
    assert cell.roles is not None
    rows = [
        [
            plain(role),
            str(len(did.urls)),
            *map(or_unknown, (did.prompt_tokens, did.cached_prompt_tokens, did.output_tokens)),
            *map(or_unknown, (did.running, did.waiting)),
            percent_or_unknown(did.kv_use),
            *map(or_unknown, (did.ttft_ms, did.e2e_ms)),
        ]
        for role, did in cell.roles.of.items()
    ]
    tables = [Table(f"{cell_name(cell)}: by role, as the engines count; never added up", _BY_ROLE, rows)]
    if split := cell.roles.ttft_split:
        parts = (split.client_ms, split.prefill_ms, split.decode_ms, split.transfer_ms, split.rest_ms)
        title = f"{cell_name(cell)}: mean TTFT of all answers, in parts"
        tables.append(Table(title, _TTFT_BY_ROLE, [list(map(or_unknown, parts))]))
    return tables


def ttft_tables(summary: Summary) -> list[Table]:
    """One with a row for each load and backend whose engine counts its first tokens."""
    rows = [
        [plain(f"{point_words(group.point)}, {row.label}"), *figures]
        for group in groups(summary)
        for row in group.rows
        if (figures := _medians(row))
    ]
    title = (
        "mean TTFT of all answers, warm-up included, in parts: the engine's queue, the engine, and the rest "
        "(HTTP, chat template, network, client)"
    )
    return [Table(title, _TTFT_PARTS, rows)] if rows else []


def _medians(row: Row) -> list[str]:
    """Medians over the repeats."""
    parts = [cell.ttft_parts for cell in row.usable if cell.ttft_parts is not None]
    if not parts:
        return []
    columns = ([getattr(each, name) for each in parts] for name in _PARTS)
    return [NOT_KNOWN if None in column else or_unknown(median(column)) for column in columns]
