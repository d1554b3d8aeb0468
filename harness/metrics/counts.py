"""Counts of requests and output tokens."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics import bundling, latency, sample_size
from harness.metrics.view import CellView, Figures, RequestView, Rows
from harness.model import UNSET, OutputTokens, Requests, TemplateTokens
from harness.records.layout import UNKNOWN, Outcome, Phase
from harness.records.request_table import RequestTable


def compute(cell: CellView) -> Figures:
    count = cell.of(requests_of)
    unknown = {"requests.resent": "this version of the harness did not record attempts"}
    return Figures(
        requests=count,
        sample=sample_size.sample(cell.timed, cell.facts.minimum),
        output_tokens=output_tokens(cell),
        events_per_arrival=bundling.merged_gaps(cell)[1],
        template_tokens=template_tokens(cell, cell.requested),
        nulls=unknown if count.resent is None else {},
    )


def requests_of(cell: CellView) -> Requests:
    """Counts the measured phase with its impatient users; warm-up requests are counted apart."""
    every, facts = cell.requests, cell.facts
    rows = every[every["phase"] != Phase.WARMUP]
    outcomes = {code.name.lower(): int(np.count_nonzero(rows["outcome"] == code)) for code in Outcome}
    ok, dropped, cancelled = outcomes["ok"], outcomes["dropped"], outcomes["cancelled"]
    impatient = int(np.count_nonzero(rows["phase"] == Phase.IMPATIENT))
    return Requests(
        planned=facts.planned,
        unsent=facts.unsent,
        sent=int(np.count_nonzero(rows["sent_ns"] != UNKNOWN)),
        ok=ok,
        failed=len(rows) - ok - dropped - cancelled - outcomes["abandoned"],
        dropped=dropped,
        cancelled=cancelled,
        impatient=impatient or UNSET,
        resent=_resent(rows),
        warmup=int(np.count_nonzero(every["phase"] == Phase.WARMUP)),
        outcomes={name: count for name, count in outcomes.items() if count},
    )


def _resent(rows: Rows) -> int | None:
    """None where attempts were not recorded."""
    attempts = rows["attempts"][rows["sent_ns"] != UNKNOWN]
    return None if (attempts == UNKNOWN).any() else int(np.count_nonzero(attempts > 1))


def _sum(counts: NDArray[np.int32]) -> int | None:
    """None where one is not known."""
    return int(counts.sum()) if len(counts) and (counts != UNKNOWN).all() else None


def output_tokens(view: RequestView) -> OutputTokens:
    total, text_events = (_sum(view.answers[field]) for field in ("output_tokens", "text_events"))
    return OutputTokens(
        total=total,
        source="usage" if total is not None else None,
        tokens_per_event=total / text_events if total and text_events else None,
        unknown_gaps=latency.unknown_gaps(view),
    )


def template_tokens(view: RequestView, requested: RequestTable | None) -> TemplateTokens | None:
    """Prompt tokens beyond the content, least and most, of requests that carry no earlier answers.

    If all have the same messages, the two are equal exactly when every text has its length. None if the
    server did not count prompts.
    """
    rows = view.measured_requests[view.measured_requests["prompt_tokens"] != UNKNOWN]
    if requested is None or not len(rows):
        return None
    rows = rows[requested.numbers["turn"][rows["seq"]] <= 0]
    if not len(rows):
        return None
    beyond = rows["prompt_tokens"] - requested.numbers["content_tokens"][rows["seq"]]
    return TemplateTokens(min=int(beyond.min()), max=int(beyond.max()))
