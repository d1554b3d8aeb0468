"""Usage: whether the server's token counts fit the text that it sent."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.metrics.cache_hits import beyond_prompt, counted
from harness.metrics.view import Mask, Rows
from harness.model import IssueCode
from harness.records.layout import UNKNOWN
from harness.validity.rule import Evidence, Rule, Violation

MAX_SHARE = 0.01  # of the answers
# An engine may flush half a character in an event of its own, or count the end of an answer.
ALLOWED_TOKENS = 1


@partial(
    Rule,
    code=IssueCode.USAGE_IMPLAUSIBLE,
    measures="output tokens below the text events, below the reasoning tokens or above what the request "
    "allowed while the events are not, prompt tokens above the bytes of the longest prompt and the tokens of "
    "a short chat together, and cached tokens above the prompt's, as the server counts them",
    limit=f"{MAX_SHARE:.0%} of the answers, {ALLOWED_TOKENS} token apart; prompt and cached tokens: none",
    hint="the server's usage is not that of these answers: tokens/s, TPOT and costs follow from it; "
    "compare E2E and characters/s",
    cause="engine",
    eases=True,
    # Output tokens that cannot be right say nothing of these.
    explains=(IssueCode.FIRST_EVENT_TOKENS, IssueCode.TOKENS_PER_EVENT),
)
def _implausible(cell: Evidence) -> Iterator[Violation]:
    yield from _fewer_than_events(cell)
    yield from _more_than_allowed(cell)
    yield from _reasoning_beyond_output(cell)
    yield from _prompt_beyond_bytes(cell)
    yield from _cached_beyond_prompt(cell)


def _fewer_than_events(cell: Evidence) -> Iterator[Violation]:
    """Leaves out tool calls: an engine may send one token of them in several events."""
    places = np.flatnonzero(cell.view.answered)
    if any(cell.records.tool_calls):
        places = places[[not cell.records.tool_calls[row] for row in places.tolist()]]
    rows = cell.records.requests[places]
    rows = rows[rows["output_tokens"] != UNKNOWN]
    few = rows[rows["text_events"] > rows["output_tokens"] + ALLOWED_TOKENS]
    if len(few) > MAX_SHARE * len(rows):
        yield Violation(
            f"{len(few)} of {len(rows)} answers with fewer tokens than text events: "
            f"{few['output_tokens'].mean():.1f} tokens in {few['text_events'].mean():.1f} events (means)",
            "a token or more in each text event",
        )


def _more_than_allowed(cell: Evidence) -> Iterator[Violation]:
    if cell.requested is None:
        return
    rows, most = limited(cell)
    many = beyond(rows["output_tokens"], most) & ~beyond(rows["text_events"], most)
    if np.count_nonzero(many) > MAX_SHARE * len(rows):
        yield Violation(
            f"{np.count_nonzero(many)} of {len(rows)} answers with more tokens than were allowed: "
            f"{rows['output_tokens'][many].mean():.1f} where {most[many].mean():.1f} were allowed (means)",
            "the tokens that the request allowed",
        )


def limited(cell: Evidence) -> tuple[Rows, NDArray[np.int64]]:
    """The answers whose tokens are counted, and how many each request allowed."""
    assert cell.requested is not None
    rows = cell.view.answers
    most = cell.requested.numbers["max_tokens"][rows["seq"]]
    judged = (most > 0) & (rows["output_tokens"] != UNKNOWN)
    return rows[judged], most[judged]


def beyond(counts: NDArray[np.int64], most: NDArray[np.int64]) -> Mask:
    mask: Mask = counts > most + ALLOWED_TOKENS
    return mask


def _reasoning_beyond_output(cell: Evidence) -> Iterator[Violation]:
    rows = cell.view.answers
    rows = rows[rows["output_tokens"] != UNKNOWN]
    many = rows[rows["reasoning_tokens"] > rows["output_tokens"]]
    if len(many) > MAX_SHARE * len(rows):
        yield Violation(
            f"{len(many)} of {len(rows)} answers with more reasoning tokens than output tokens: "
            f"{many['reasoning_tokens'].mean():.1f} of {many['output_tokens'].mean():.1f} (means)",
            "the output tokens",
        )


def _prompt_beyond_bytes(cell: Evidence) -> Iterator[Violation]:
    """Sees usage that is several times too large: a token of ordinary text has four bytes or so.

    Leaves out later turns, which have the answers before them.
    """
    most = cell.facts.most_prompt_tokens
    if most is None or cell.requested is None:
        return
    rows = cell.view.answers
    rows = rows[cell.requested.numbers["turn"][rows["seq"]] <= 0]
    many = rows[rows["prompt_tokens"] > most]
    if len(many):
        yield Violation(
            f"{len(many)} of {len(rows)} answers with more prompt tokens than bytes were sent: "
            f"{many['prompt_tokens'].mean():.1f} (mean)",
            f"{most}: the bytes of the longest prompt, and the tokens of a short chat",
            "the server's usage is not that of these prompts, or a gateway adds to long ones: input "
            "tokens/s, cache hits and costs follow from it",
            explains=(),
        )


def _cached_beyond_prompt(cell: Evidence) -> Iterator[Violation]:
    rows, many = counted(cell.view), beyond_prompt(cell.view)
    if len(many):
        yield Violation(
            f"{len(many)} of {len(rows)} answers with more cached tokens than prompt tokens: "
            f"{many['cached_tokens'].mean():.1f} of {many['prompt_tokens'].mean():.1f} (means)",
            "the prompt tokens",
            explains=(),
        )


RULES = (_implausible,)
