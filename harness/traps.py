"""What an engine does without saying so: a usage block left out, tokens sent together, a field ignored."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.metrics.judging import TRUNCATED
from harness.metrics.latency import answered
from harness.model import Answers, Reason
from harness.record import UNKNOWN, EventKind, Records

Json = Mapping[str, Any]

# A token that ends inside a character waits for the next one.
SEVERAL_PER_EVENT = 1.1
# Share of valid answers: below the first some of a schema is not enforced, below the second nothing is.
ENFORCED, IGNORED = 0.98, 0.5
CUT = 0.5  # share of answers that the token limit ended


def findings(records: Records, facts: Json, answers: Answers | None) -> Iterator[Reason]:
    """`facts` is the content of cell.json; `answers` what metrics.quality makes of them."""
    yield from _usage_missing(records)
    yield from _tokens_together(records, facts)
    yield from _reasoning(records, facts)
    yield from _shapes_ignored(answers)


def _usage_missing(records: Records) -> Iterator[Reason]:
    rows = records.requests[answered(records.requests)]
    missing = int(np.count_nonzero(rows["output_tokens"] == UNKNOWN))
    if missing:
        yield Reason(
            "usage-missing",
            "SUSPECT",
            f"{missing} of {len(rows)} answers without a usage block",
            "0",
            "token rates are null: ask the server for usage in streams, or compare characters per second",
        )


def _tokens_together(records: Records, facts: Json) -> Iterator[Reason]:
    """Only where the definition says that each token has an event of its own."""
    rows = records.requests[answered(records.requests)]
    events = int(rows["text_events"].sum())
    if (facts.get("habits") or {}).get("tokens_per_event") != "one" or not events:
        return
    if (rows["output_tokens"] == UNKNOWN).any():
        return
    each = float(rows["output_tokens"].sum()) / events
    if each > SEVERAL_PER_EVENT:
        yield Reason(
            "tokens-per-event",
            "SUSPECT",
            f"{each:.2f} tokens per event",
            "1 declared",
            "gaps are between events: compare TPOT, not ITL",
        )


def _reasoning(records: Records, facts: Json) -> Iterator[Reason]:
    if (facts.get("request") or {}).get("thinking") != "off":
        return
    reasoned = records.events["seq"][records.events["kind"] == EventKind.REASONING]
    if len(reasoned):
        yield Reason(
            "thinking-not-off",
            "SUSPECT",
            f"{len(np.unique(reasoned))} answers with reasoning text",
            "0",
            "TTFT and length include it: switch it off at the server, or set request.thinking to on for all",
        )


def _shapes_ignored(answers: Answers | None) -> Iterator[Reason]:
    """By shape: an engine may keep to one and not to another. Cut answers and refusals enter no rate."""
    for shape, counts in (answers.checks.get("structured", {}) if answers else {}).items():
        if not counts["told"]:
            continue
        rate, cut = counts["rate"], counts.get(TRUNCATED, 0) / counts["asked"]
        if rate is not None and rate < ENFORCED:
            ignored = rate < IGNORED
            yield Reason(
                "structured-ignored" if ignored else "structured-invalid",
                "SUSPECT",
                f"{rate:.0%} of the whole answers are valid ({shape})",
                f"{ENFORCED:.0%}",
                "this engine accepts the constraint and ignores it: `bench probe` shows its answers"
                if ignored
                else "this engine enforces the constraint in part: see what its answers break",
            )
        if cut > CUT:
            yield Reason(
                "structured-cut",
                "SUSPECT",
                f"{counts[TRUNCATED]} of {counts['asked']} answers end at the token limit ({shape})",
                f"{CUT:.0%}",
                "answers without a shape have no end: see `bench probe`; or raise --output-tokens",
            )
