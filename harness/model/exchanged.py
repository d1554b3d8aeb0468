"""What bench knows of a cell and foreign formats have no place for: exports carry it in one extra field."""

from typing import Annotated

import msgspec

from harness.model.comparison import Estimate
from harness.model.figures import Requests
from harness.model.load import Load
from harness.model.record import Record, doc
from harness.model.validity import Validity

KEY = "llm-servebench"  # of the field, and the name of the tool in it

# Names of metrics in formats that are both read and written.
REPORT_LATENCIES = {
    "ttft_ms": "time_to_first_token",
    "itl_ms": "inter_token_latency",
    "tpot_ms": "time_per_output_token",
    "e2e_ms": "request_latency",
}
REPORT_RATES = {
    "requests_per_s": "request_rate",
    "output_tokens_per_s": "output_token_rate",
    "input_tokens_per_s": "input_token_rate",
}
INFERENCEX_LATENCIES = {"ttft_ms": "ttft", "itl_ms": "itl", "tpot_ms": "tpot", "e2e_ms": "e2el"}
MLPERF_LATENCIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "latency"}


def as_median(statistic: str) -> str:
    """Renames a statistic for tools that call p50 the median."""
    return "median" if statistic == "p50" else statistic


class Exchanged(Record, frozen=True, kw_only=True):
    """Content of the extra field of an exported cell, which `bench import` reads again."""

    version: Annotated[str, doc("Of bench.")]
    run: Annotated[str, doc("That the cell is of.")]
    cell: Annotated[str, doc("Its name.")]
    label: Annotated[str, doc("Of the backend.")]
    repeat: Annotated[int, doc("From 0 on.")]
    started_unix_ns: Annotated[int, doc("Wall clock at t0 of the cell.")]
    model: Annotated[str | None, doc("Null where it is not known.")] = None
    load: Annotated[Load, doc("The load point, and how its requests arrived.")]
    validity: Annotated[Validity, doc("Whether the figures can be the server's.")]
    requests: Annotated[Requests, doc("Counts.")]
    tool: Annotated[str, doc("That measured.")] = KEY
    tool_version: Annotated[str | None, doc("Null where it is not known.")] = None
    definitions: Annotated[dict[str, str], doc("By metric, a meaning that is not that of bench.")] = (
        msgspec.field(default_factory=dict)
    )
    figures: Annotated[dict[str, float], doc("By path in a cell, what the format has no place for.")] = (
        msgspec.field(default_factory=dict)
    )
    estimates: Annotated[tuple[Estimate, ...], doc("Intervals over the repeats of this cell.")] = ()
