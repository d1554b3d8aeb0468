"""What an engine goes on computing for users who have hung up."""

import numpy as np

from harness.metrics.latency import unseen_tokens
from harness.metrics.reason import NOT_COUNTED, OfServer
from harness.metrics.view import CellView, Figures
from harness.records.layout import UNKNOWN, Outcome


def compute(cell: CellView) -> Figures:
    tokens, why = _tokens_after_hang_up(cell)
    return Figures(
        tokens_after_hang_up=tokens, nulls={} if tokens is not None else {"tokens_after_hang_up": why}
    )


def _tokens_after_hang_up(cell: CellView) -> tuple[float | None, str]:
    """What the engine counted of the whole cell, less what its answers and the abandoned ones brought.

    An abandoned answer brought as many tokens as it had events with text, at the mean of the whole answers.
    """
    sent = cell.requests[cell.requests["sent_ns"] != UNKNOWN]
    left, whole = sent[sent["outcome"] == Outcome.ABANDONED], sent[sent["outcome"] == Outcome.OK]
    if not len(left):
        return None, "nobody hung up"
    counters = cell.facts.server_counters or {}
    if "output_tokens" not in counters:
        return None, OfServer("the engine does not count the tokens that it generates")
    if cell.facts.counter_restarts or len(left) + len(whole) < len(sent):
        return None, "the engine restarted, or requests failed: what it counted belongs to these as well"
    if not len(whole) or (whole["output_tokens"] == UNKNOWN).any() or not whole["text_events"].any():
        return None, NOT_COUNTED
    if unseen_tokens(whole).any():
        return None, "the server keeps reasoning to itself: how much came before a hang-up is not known"
    came = float(np.sum(whole["output_tokens"], dtype=np.int64))
    per_event = came / float(np.sum(whole["text_events"], dtype=np.int64))
    came += per_event * float(np.sum(left["text_events"], dtype=np.int64))
    return max(0.0, counters["output_tokens"] - came) / len(left), ""  # `came` is an estimate
