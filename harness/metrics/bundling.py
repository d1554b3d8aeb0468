"""Tokens and events that came together: what gaps and TPOT cannot tell apart."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import (
    after_summaries,
    event_gaps_ms,
    first_arrivals,
    first_tokens,
    per_token_ms,
    unseen_tokens,
)
from harness.metrics.view import RequestView
from harness.records.layout import UNKNOWN, Records, with_text


def merged_gaps(view: RequestView) -> tuple[float, float | None]:
    """Share of the gaps between text events that are 0, since both events arrived as one; events per arrival.

    The second is None without a text event.
    """
    gaps = view.of(event_gaps_ms)
    events = int(np.maximum(view.answers["text_events"], 0).sum())  # UNKNOWN: a file without arrivals
    together = int(np.count_nonzero(gaps <= 0))
    return together / max(len(gaps), 1), events / (events - together) if events > together else None


def tokens_of_first_events(view: RequestView) -> tuple[float, float] | None:
    """Estimates the tokens of a first arrival by its letters, and how low that may make TPOT; None if all
    counts are known.

    A first arrival of one token has as many letters as in the answers with an event for each token; without
    such answers, as a token has on average. Answers open with short words, and a sign of several tokens,
    such as an emoji, is one event, so the average of a few answers says little. The second value is a share:
    the median over all answers that have a TPOT, as if each later event held one token and the first arrival
    all others.
    """
    rows = view.of(after_summaries)
    rows = rows[np.isin(rows["seq"], view.answers["seq"]) & np.isfinite(per_token_ms(rows))]
    unknown = first_tokens(rows) == UNKNOWN
    if not unknown.any():
        return None
    events, letters = (found[rows["seq"]] for found in _of_first_arrivals(view.records))
    unseen = unseen_tokens(rows)
    single, tokens = letters[first_tokens(rows) - unseen == 1], rows["output_tokens"] - unseen
    per_token = float(rows["output_chars"].sum()) / float(tokens.sum())
    of_one = float(single.mean()) if len(single) else per_token
    later = rows["text_events"] - np.maximum(events, 1)
    beyond = np.where(unknown, np.maximum(tokens - 1 - later, 0), 0)
    low = float(np.median(beyond / np.maximum(tokens - 1, 1)))
    return float(letters[unknown].mean()) / max(of_one, 1e-9), low


def _of_first_arrivals(records: Records) -> NDArray[np.float64]:
    """Text events of each request's first arrival, and the characters in them, by `seq`."""
    found = np.zeros((2, records.seq_count))
    for text in first_arrivals(records):
        for row, weights in zip(found, (with_text(text), text["text_chars"]), strict=True):
            row += np.bincount(text["seq"], weights, minlength=records.seq_count)
    return found
