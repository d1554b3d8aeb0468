"""Events of the stream: whether each token has an arrival of its own."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from harness.metrics.bundling import merged_gaps, tokens_of_first_events
from harness.metrics.latency import at_once, unseen_tokens, with_silent_tokens
from harness.model import WITHOUT_TEXT, IssueCode
from harness.model.numbers import apart, percent_apart
from harness.records.layout import UNKNOWN
from harness.validity.client import late_part, merged_events, rarely_late
from harness.validity.rule import Evidence, Rule, Violation

MERGED_GAPS = 0.01
LATE_SHOWN = 0.1  # of them
# A first arrival of more tokens by its letters, where the rest allows TPOT to be low by more than the share.
FIRST_TOKENS, TPOT_LOW = 1.5, 0.01
# A token that ends inside a character waits for the next one.
SEVERAL_PER_EVENT = 1.1


@partial(
    Rule,
    code=IssueCode.ITL_MERGED,
    measures="gaps between events that are within one arrival, or that all events of more than half of "
    "the answers came at once (a doubt about every metric): the server wrote them together",
    limit=f"{MERGED_GAPS:.0%}",
    hint="the server sends several events at once: ITL is between arrivals; compare TPOT",
    cause="work",
    metrics=("itl_ms",),
)
def _itl_merged(cell: Evidence) -> Iterator[Violation]:
    if any(merged_events.find(cell)):  # then it is the client's doing
        return
    ours = late_part(cell)
    rows = cell.view.answers
    # An engine whose whole answer is one event holds none of its events back.
    whole = int(np.count_nonzero(at_once(rows) & (rows["text_events"] >= 2)))
    if whole > len(rows) / 2:  # fewer may be those of one moment in which nobody looked
        yield Violation(
            f"{whole} of {len(rows)} answers came at once",
            "half of the answers",
            hint="the server, or a proxy before it, holds answers back and writes them whole: ITL and TPOT "
            "of these are not known, TTFT is when the text came; compare E2E",
            metrics=(),
        )
        return
    share, each = merged_gaps(cell.view)
    if share * (1 - (ours or 0.0)) > MERGED_GAPS and each is not None:
        partly = f", {ours:.0%} of them by a late look" if ours and ours > LATE_SHOWN else ""
        without = f"; {whole} of {len(rows)} answers came at once, without a TPOT" if whole else ""
        merged = percent_apart(share, MERGED_GAPS)
        late = rarely_late(cell) if ours is None else None
        yield Violation(
            f"{merged}% of the gaps are within one arrival{partly}, {each:.2f} events per arrival{without}",
            hint="the server sends several events at once, or the load generator, which once looked "
            f"{late[0]:.0f} ms late, read them so: ITL is between arrivals; compare TPOT"
            if late and late[1] > MERGED_GAPS
            else None,
            metrics=("itl_ms", "tpot_ms") if whole else None,
        )


@partial(
    Rule,
    code=IssueCode.NOT_STREAMED,
    measures="answers of three tokens or more that came whole, although a stream was asked for",
    limit="half of the answers",
    hint="answers come whole, as the server does not stream: TTFT is E2E, and TPOT is not known; compare E2E",
    cause="work",
    metrics=("ttft_ms", "tpot_ms", "itl_ms"),
    explains=(IssueCode.TOKENS_PER_EVENT,),
)
def _not_streamed(cell: Evidence) -> Iterator[Violation]:
    """Leaves out tool calls: an engine may send a whole call in one event of its stream."""
    if cell.facts.request.api in WITHOUT_TEXT:
        return
    rows = cell.view.answers
    if any(cell.records.tool_calls):
        answered = np.flatnonzero(cell.view.answered).tolist()
        rows = rows[[not cell.records.tool_calls[row] for row in answered]]
    whole = int(np.count_nonzero(at_once(rows) & (rows["text_events"] == 1)))
    if whole > len(rows) / 2:
        yield Violation(f"{whole} of {len(rows)} answers of several tokens came as one event")


@partial(
    Rule,
    code=IssueCode.FIRST_EVENT_TOKENS,
    measures="tokens that came first and as one, by their letters where nobody counted them, and how far "
    "TPOT may be low by it",
    limit=f"{FIRST_TOKENS:g} tokens, {TPOT_LOW:.0%}",
    hint="the server did not say how many tokens came first and as one: compare E2E and output tokens/s",
    cause="work",
    metrics=("tpot_ms",),
)
def _first_event_tokens(cell: Evidence) -> Iterator[Violation]:
    first = tokens_of_first_events(cell.view)
    if first is None:
        return
    tokens, low = first
    if tokens > FIRST_TOKENS and low > TPOT_LOW:
        about, by = apart(tokens, FIRST_TOKENS, 1)[0], percent_apart(low, TPOT_LOW)
        yield Violation(f"about {about} tokens in first arrivals, by their letters: TPOT may be {by}% low")


@partial(
    Rule,
    code=IssueCode.TOKENS_PER_EVENT,
    measures=f"tokens per event, SUSPECT above {SEVERAL_PER_EVENT:g}, where the definition says one",
    limit="1 declared",
    hint="gaps are between events: compare TPOT, not ITL",
    cause="engine",
    metrics=("itl_ms",),
)
def _tokens_per_event(cell: Evidence) -> Iterator[Violation]:
    """Doubts gaps only if the definition says that each token has an event of its own.

    Answers with tokens that have no text, such as special ones and the tags around reasoning, are left out.
    """
    rows = cell.view.answers
    silent = np.isin(rows["seq"], cell.view.of(with_silent_tokens))
    rows = rows[~silent & (rows["first_reasoning_ns"] == UNKNOWN)]
    events = int(rows["text_events"].sum())
    if cell.facts.habits.get("tokens_per_event") != "one" or not events:
        return
    if (rows["output_tokens"] == UNKNOWN).any():
        return
    each = float((rows["output_tokens"] - unseen_tokens(rows)).sum()) / events
    if each > SEVERAL_PER_EVENT:
        yield Violation(f"{each:.2f} tokens per event")


RULES = (_itl_merged, _not_streamed, _first_event_tokens, _tokens_per_event)
