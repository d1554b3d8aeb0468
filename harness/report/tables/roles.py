"""Engines with roles: what each role did, and what the time to the first token is made of."""

from harness.model import CellResult, Summary
from harness.report.view import cell_name
from harness.report.wording import Table, or_unknown, percent_or_unknown, plain

_HEAD = ("role", "engines", "prompt", "cached", "output", "run", "wait", "KV %",
         "TTFT ms", "E2E ms")  # fmt: skip
_SPLIT = ("TTFT ms", "prefill", "decode", "of it transfer", "router, network")


def role_tables(summary: Summary) -> list[Table]:
    """Two for each cell whose engines have roles; none of an INVALID one."""
    return [table for cell in summary.cells if cell.roles and not cell.invalid for table in _tables(cell)]


def _tables(cell: CellResult) -> list[Table]:
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
    tables = [Table(f"{cell_name(cell)}: by role, as the engines count; never added up", _HEAD, rows)]
    if split := cell.roles.ttft_split:
        parts = (split.client_ms, split.prefill_ms, split.decode_ms, split.transfer_ms, split.rest_ms)
        title = f"{cell_name(cell)}: mean TTFT of all answers, in parts"
        tables.append(Table(title, _SPLIT, [list(map(or_unknown, parts))]))
    return tables
