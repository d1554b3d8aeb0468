"""What bench knows of a cell and foreign formats have no place for: exports carry it in one extra field."""

from typing import Annotated

import msgspec

from harness.model.comparison import Estimate
from harness.model.figures import Requests
from harness.model.imported import Fact
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
REPORT_MORE = ("prefix_cache_hit_rate", "tokens_after_hang_up")  # no format has a place for them
INFERENCEX_LATENCIES = {"ttft_ms": "ttft", "itl_ms": "itl", "tpot_ms": "tpot", "e2e_ms": "e2el"}
MLPERF_LATENCIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "latency"}


def as_median(statistic: str) -> str:
    """Renames a statistic for tools that call p50 the median."""
    return "median" if statistic == "p50" else statistic


# What may be known of a cell or not; of a cell that bench measured all is.
FACTS: tuple[Fact, ...] = ("answers", "outcomes", "load")


class Exchanged(Record, frozen=True, kw_only=True):
    """Content of the extra field of an exported cell, which `bench import` reads again."""

    version: Annotated[str, doc("Version of bench that exported the cell.")]
    run: Annotated[str, doc("Name of the run that the cell belongs to.")]
    cell: Annotated[str, doc("Name of the cell in that run.")]
    label: Annotated[str, doc("Label of the backend in that run.")]
    repeat: Annotated[int, doc("Number of the repeat, from 0.")]
    started_unix_ns: Annotated[int, doc("Unix time at the start of the cell (t0), ns.")]
    model: Annotated[str | None, doc("Name of the model; null: not known.")] = None
    load: Annotated[Load, doc("Load point, and how its requests arrived.")]
    validity: Annotated[
        Validity, doc("Verdict on whether the figures can be the server's, with the reasons.")
    ]
    requests: Annotated[Requests, doc("Counts of the requests by how they ended.")]
    facts: Annotated[
        tuple[Fact, ...], doc("What is known: answers (their count), outcomes (the count of failures), load.")
    ] = FACTS
    simulated: Annotated[bool, doc("Whether a scripted server answered: the figures are of no engine.")] = (
        False
    )
    tool: Annotated[str, doc("Tool that measured the cell.")] = KEY
    tool_version: Annotated[str | None, doc("Version of that tool; null: not known.")] = None
    definitions: Annotated[
        dict[str, str], doc("Meaning of each figure that bench defines otherwise, by metric.")
    ] = msgspec.field(default_factory=dict)
    figures: Annotated[
        dict[str, float], doc("Figures that the format has no place for, by path in a cell.")
    ] = msgspec.field(default_factory=dict)
    estimates: Annotated[
        tuple[Estimate, ...],
        doc("Estimates of the cell's backend at its load over all repeats, with intervals."),
    ] = ()
