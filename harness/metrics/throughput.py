"""Rates over the steady part of a cell, by one rule: what each answer amounts to, times the share of its work
inside the window."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics.reason import NO_ANSWER, NOT_COUNTED, OfServer
from harness.metrics.view import CellView, Figures, Floats
from harness.metrics.window import Window
from harness.model import WITHOUT_TEXT, family
from harness.model.metric import OF_AUDIO
from harness.records.layout import GENERATED, UNKNOWN, Records

# The field of a request record that a rate counts, by metric, as its declaration says.
_COUNTED = {metric.name: metric.counts for metric in family("rate") if metric.counts}
_OF_TEXT = tuple(metric.name for metric in family("rate") if metric.of_text)
OF_REASONING = ("reasoning_tokens_per_s", "answer_tokens_per_s")
RATES = (*_COUNTED, "requests_per_s", "items_per_s", "output_chars_per_s", "answer_tokens_per_s")


def compute(cell: CellView) -> Figures:
    """Every rate but goodput, which needs limits."""
    per_s = cell.of(rates_of)
    nulls = {name: _why_not_apart(cell) for name in OF_REASONING if per_s[name] is None}
    nulls |= {
        name: _why_not_counted(cell, name)
        for name in RATES
        if per_s[name] is None and name not in OF_REASONING
    }
    if cell.facts.request.api not in WITHOUT_TEXT:
        nulls["items_per_s"] = "answers are text, not vectors or scores"
    if cell.facts.request.api in OF_AUDIO:
        nulls["items_per_s"] = "an answer is one transcript: see requests_per_s and audio_s_per_s"
    return Figures(nulls, **per_s)


def rates_of(cell: CellView) -> dict[str, float | None]:
    """All None without a window, and those of text where answers are none, whatever the server counts."""
    items = None if cell.requested is None else cell.requested.items()
    if cell.window is None:
        return dict.fromkeys(RATES)
    per_s = rates(cell.records, cell.window, cell.shares, items)
    return per_s | dict.fromkeys(_OF_TEXT) if cell.facts.request.api in WITHOUT_TEXT else per_s


def rates(
    records: Records, window: Window, shares: Floats, items: NDArray[np.int32] | None = None
) -> dict[str, float | None]:
    """Rates per second of the window. `shares`: of `work_shares`. A rate is None if one answer lacks its
    count.

    `items`: by `seq`, the vectors or scores of an answer; None where answers are text.
    """
    requests = records.requests

    def counted(field: str) -> float | None:
        rows = requests[field][shares > 0]
        known = bool(len(rows)) and bool((rows != UNKNOWN).all())
        return window.per_second((shares * requests[field]).sum()) if known else None

    per_s = {name: counted(field) for name, field in _COUNTED.items()}
    output, reasoning = per_s["output_tokens_per_s"], per_s["reasoning_tokens_per_s"]
    if not (requests["reasoning_tokens"] > 0).any():
        reasoning = None
    answer = None
    if output is not None and reasoning is not None and reasoning <= output:
        answer = output - reasoning
    return per_s | {
        "requests_per_s": window.per_second(shares.sum()),
        "items_per_s": None if items is None else window.per_second((shares * items[requests["seq"]]).sum()),
        "output_chars_per_s": window.per_second((shares * _text_chars(records)).sum()),
        "reasoning_tokens_per_s": reasoning,
        "answer_tokens_per_s": answer,
    }


def _why_not_counted(cell: CellView, name: str) -> str:
    """The reason a rate is null that does not ask for reasoning."""
    inside = cell.requests[cell.shares > 0]
    if not len(inside):
        return NO_ANSWER
    lacking = np.count_nonzero(inside[_COUNTED[name]] == UNKNOWN) if name in _COUNTED else len(inside)
    some = "" if lacking == len(inside) else f" of {lacking} of {len(inside)} answers"
    return OfServer(f"{NOT_COUNTED}{some}")


def _why_not_apart(cell: CellView) -> str:
    """The reason reasoning and answers have no rates of their own."""
    counted = cell.requests[cell.requests["output_tokens"] != UNKNOWN]
    if (counted["reasoning_tokens"] > counted["output_tokens"]).any():
        return "the server counts more reasoning tokens than output tokens"
    if (cell.requests["reasoning_tokens"] > 0).any():
        some = "the server counts the reasoning tokens of some answers only"
        return some if (cell.shares > 0).any() else NO_ANSWER
    if (cell.requests["first_reasoning_ns"] != UNKNOWN).any():
        return "the server does not count reasoning tokens"
    return OfServer("no answer has reasoning")


def _text_chars(records: Records) -> Floats:
    """Characters per request."""
    chars: Floats = np.zeros(records.seq_count)
    for block in records.event_blocks():
        text = block[np.isin(block["kind"], GENERATED)]
        chars += np.bincount(text["seq"], text["text_chars"], minlength=len(chars))[: len(chars)]
    return np.asarray(chars[records.requests["seq"]], np.float64)
