"""How many requests and output tokens a cell has."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics import latency
from harness.model import CellFacts, OutputTokens, Requests
from harness.records.layout import UNKNOWN, Outcome, Phase, Records


def requests(rows: NDArray[np.void], facts: CellFacts) -> Requests:
    """Of the measured phase; warm-up requests are counted apart."""
    every, rows = rows, rows[rows["phase"] == Phase.MEASURE]
    outcomes = {code.name.lower(): int(np.count_nonzero(rows["outcome"] == code)) for code in Outcome}
    ok, dropped, cancelled = outcomes["ok"], outcomes["dropped"], outcomes["cancelled"]
    return Requests(
        planned=facts.planned,
        unsent=facts.unsent,
        sent=int(np.count_nonzero(rows["sent_ns"] != UNKNOWN)),
        ok=ok,
        failed=len(rows) - ok - dropped - cancelled,
        dropped=dropped,
        cancelled=cancelled,
        resent=_resent(rows),
        warmup=int(np.count_nonzero(every["phase"] == Phase.WARMUP)),
        outcomes={name: count for name, count in outcomes.items() if count},
    )


def _resent(rows: NDArray[np.void]) -> int | None:
    """None where attempts were not recorded."""
    attempts = rows["attempts"][rows["sent_ns"] != UNKNOWN]
    return None if (attempts == UNKNOWN).any() else int(np.count_nonzero(attempts > 1))


def output_tokens(records: Records) -> OutputTokens:
    rows = records.requests[latency.answered(records.requests)]
    known = rows["output_tokens"] != UNKNOWN
    text_events = int(rows["text_events"].sum())
    total = int(rows["output_tokens"].sum()) if len(rows) and known.all() else None
    return OutputTokens(
        total=total,
        source="usage" if total is not None else None,
        tokens_per_event=total / text_events if total and text_events else None,
        unknown_gaps=latency.unknown_gaps(records),
    )
