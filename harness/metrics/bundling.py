"""Tokens and events that came together: what gaps and TPOT cannot tell apart."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import event_gaps_ms, first_tokens
from harness.metrics.view import RequestView
from harness.records.layout import GENERATED, UNKNOWN, Records


def merged_gaps(view: RequestView) -> tuple[float, float | None]:
    """Share of the gaps between text events that are 0, since both events arrived as one; events per arrival.

    The second is None without a text event.
    """
    gaps = view.of(event_gaps_ms)
    events = int(view.answers["text_events"].sum())
    together = int(np.count_nonzero(gaps <= 0))
    return together / max(len(gaps), 1), events / (events - together) if events > together else None


def tokens_of_first_events(view: RequestView) -> tuple[float, float] | None:
    """Estimates the tokens of a first event by its letters, and how low that may make TPOT; None if all
    counts are known.

    A first event of one token has as many letters as in the answers with an event for each token; without
    such answers, as a token has on average. Answers open with short words, and a sign of several tokens,
    such as an emoji, is one event, so the average of a few answers says little. The second value is a share:
    the median over all answers, as if all tokens beyond one per event were in the first.
    """
    rows = view.answers
    rows = rows[(rows["output_tokens"] >= 2) & (rows["text_events"] >= 2)]
    unknown = first_tokens(rows) == UNKNOWN
    if not unknown.any():
        return None
    letters = _first_letters(view.records, rows["seq"][unknown])
    single = _first_letters(view.records, rows["seq"][first_tokens(rows) == 1])
    per_token = float(rows["output_chars"].sum()) / float(rows["output_tokens"].sum())
    of_one = float(single.mean()) if len(single) else per_token
    beyond = np.where(unknown, np.maximum(rows["output_tokens"] - rows["text_events"], 0), 0)
    low = float(np.median(beyond / (rows["output_tokens"] - 1)))
    return float(letters.mean()) / max(of_one, 1e-9), low


def _first_letters(records: Records, wanted: NDArray[np.int32]) -> NDArray[np.int32]:
    """Characters in the first text event of each request."""
    events = records.events
    text = events[np.isin(events["kind"], GENERATED) & np.isin(events["seq"], wanted)]
    letters: NDArray[np.int32] = text["text_chars"][np.unique(text["seq"], return_index=True)[1]]
    return letters
