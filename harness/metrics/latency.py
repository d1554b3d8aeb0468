"""Per-request latencies in milliseconds, from the two clocks a request has: start and sent.

Only requests of Phase.MEASURE are looked at. A latency that was never reached (failed, dropped, timed
out) is +inf: a failure can push a percentile up or out of reach, never down.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.records.layout import GENERATED, UNKNOWN, EventKind, Outcome, Phase, Records

Floats = NDArray[np.float64]
_NS_PER_MS = 1e6
_NONE: NDArray[np.int32] = np.zeros(0, np.int32)
# No server generates one answer at 50,000 tokens/s: text that came faster was written at once, and what
# lies between its reads is the network's time.
LEAST_GAP_NS = 20_000


def measured(requests: NDArray[np.void]) -> NDArray[np.bool_]:
    """Requests that statistics are made of. What we cancelled ourselves says nothing about the server."""
    mask: NDArray[np.bool_] = (requests["phase"] == Phase.MEASURE) & (
        requests["outcome"] != Outcome.CANCELLED
    )
    return mask


def answered(requests: NDArray[np.void]) -> NDArray[np.bool_]:
    """Those of `measured` that ended well."""
    mask: NDArray[np.bool_] = measured(requests) & (requests["outcome"] == Outcome.OK)
    return mask


def _span_ms(requests: NDArray[np.void], start: str, stop: str) -> Floats:
    rows = requests[measured(requests)]
    good = (rows["outcome"] == Outcome.OK) & (rows[stop] != UNKNOWN) & (rows[start] != UNKNOWN)
    return np.where(good, (rows[stop] - rows[start]) / _NS_PER_MS, np.inf)


def ttft_ms(requests: NDArray[np.void]) -> Floats:
    """First event with generated text minus the intended send; in a closed loop minus the actual one."""
    return _span_ms(requests, "start_ns", "first_text_ns")


def ttft_service_ms(requests: NDArray[np.void]) -> Floats:
    """First event with generated text minus actual send."""
    return _span_ms(requests, "sent_ns", "first_text_ns")


def ttft_answer_ms(requests: NDArray[np.void]) -> Floats:
    """First event of the answer itself minus the start; one that never came after reasoning is +inf."""
    return _span_ms(requests, "start_ns", "first_answer_ns")


def ttft_reasoning_ms(requests: NDArray[np.void]) -> Floats:
    """First event of reasoning minus the start, of the good answers that have it."""
    rows = requests[answered(requests)]
    rows = rows[rows["first_reasoning_ns"] != UNKNOWN]
    waits: Floats = (rows["first_reasoning_ns"] - rows["start_ns"]) / _NS_PER_MS
    return waits


def reasons(requests: NDArray[np.void]) -> bool:
    """Whether any of them came with reasoning text."""
    return bool((requests["first_reasoning_ns"] != UNKNOWN).any())


def e2e_ms(requests: NDArray[np.void]) -> Floats:
    """Last event with generated text minus the intended send; in a closed loop minus the actual one."""
    return _span_ms(requests, "start_ns", "last_text_ns")


def first_tokens(requests: NDArray[np.void]) -> NDArray[np.int64]:
    """Output tokens in the first text event, one per row; UNKNOWN where that cannot be known.

    Where the server did not count them, they are known of answers with an event for each token. A last
    token without text, the end of the answer, has none.
    """
    tokens, events = requests["output_tokens"], requests["text_events"]
    one_each = (events == tokens) | (events == tokens - 1)
    uncounted = np.where(one_each & (tokens != UNKNOWN), 1, UNKNOWN)
    return np.where(requests["first_tokens"] != UNKNOWN, requests["first_tokens"], uncounted)


def per_token_ms(requests: NDArray[np.void]) -> Floats:
    """(last text event - first) / (output tokens - tokens of the first event), one per row.

    NaN for answers of one token, in one event, or written at once. A first event of unknown tokens is taken
    for one token.
    """
    first = first_tokens(requests)
    later = requests["output_tokens"] - np.where(first == UNKNOWN, 1, first)
    spans = (requests["last_text_ns"] - requests["first_text_ns"]) / _NS_PER_MS / np.maximum(later, 1)
    return np.where((later > 0) & (requests["text_events"] >= 2) & ~at_once(requests), spans, np.nan)


def at_once(requests: NDArray[np.void]) -> NDArray[np.bool_]:
    """Answers of several tokens or events whose text came as one piece: they have no gaps.

    A last token without text, the end of the answer, is no piece.
    """
    pieces = np.maximum(requests["output_tokens"] - 1, requests["text_events"])
    spans_ns = requests["last_text_ns"] - requests["first_text_ns"]
    mask: NDArray[np.bool_] = (
        (requests["first_text_ns"] != UNKNOWN) & (pieces >= 2) & (spans_ns < LEAST_GAP_NS * (pieces - 1))
    )
    return mask


def why_no_gaps(requests: NDArray[np.void]) -> str:
    """Why no answer has a gap between tokens."""
    rows = requests[answered(requests)]
    if not len(rows):
        return "no request has this value"
    whole = int(np.count_nonzero(at_once(rows)))
    if (rows["output_tokens"] == UNKNOWN).all() and not whole:
        return "the server reports no token counts"
    if whole:
        return f"{whole} of {len(rows)} answers came at once: the gaps between their tokens are not known"
    return "no answer has two tokens that are known to have come apart"


def by_arrival(records: Records) -> Records:
    """With `first_tokens` of the first arrival, where several events came in it.

    What came with the first token has no gap to it, so no part of the time after it is theirs.
    """
    rows, counts = records.requests, np.zeros(records.seq_count, np.int64)
    first_ns = np.full(records.seq_count, np.iinfo(np.int64).min // 2)
    first_ns[rows["seq"]] = rows["first_text_ns"]
    for block in records.event_blocks():
        text = block[np.isin(block["kind"], GENERATED)]
        near = text["seq"][text["stamp_ns"] - first_ns[text["seq"]] < LEAST_GAP_NS]
        counts += np.bincount(near, minlength=len(counts))
    together = counts[rows["seq"]]
    first, events = first_tokens(rows), np.maximum(rows["text_events"], 2)
    each = (rows["output_tokens"] - first) / (events - 1)  # tokens of an event after the first
    known = (together > 1) & (first != UNKNOWN) & (rows["output_tokens"] != UNKNOWN)
    if not known.any():
        return records
    rows = rows.copy()
    rows["first_tokens"][known] = np.rint(first + (together - 1) * each)[known]
    return replace(records, requests=rows)


def tpot_ms(requests: NDArray[np.void]) -> Floats:
    """`per_token_ms` of the measured answers that have one."""
    spans = per_token_ms(requests[answered(requests)])
    return spans[~np.isnan(spans)]


def event_gaps_ms(records: Records) -> Floats:
    """Gaps between successive text-carrying events of one request, pooled; 0 for events of one arrival."""
    wanted = records.requests["seq"][answered(records.requests)]
    return np.concatenate([np.zeros(0), *_gap_blocks(records, wanted)])


def _gap_blocks(
    records: Records, wanted: NDArray[np.int32], apart: NDArray[np.int32] = _NONE
) -> Iterator[Floats]:
    """`apart`: requests whose gaps count only where no event without text lies in them."""
    last = records.events[:0]
    for block in records.event_blocks():
        kept = np.isin(block["kind"], GENERATED)
        if len(apart):
            kept |= (block["kind"] == EventKind.OTHER) & np.isin(block["seq"], apart)
        text = np.concatenate([last, block[kept & np.isin(block["seq"], wanted)]])
        generated = np.isin(text["kind"], GENERATED)
        gaps = (text["seq"][1:] == text["seq"][:-1]) & generated[1:] & generated[:-1]
        yield (np.diff(text["stamp_ns"]) / _NS_PER_MS)[gaps]
        last = text[-1:]


def with_silent_tokens(records: Records) -> NDArray[np.int32]:
    """The answers in which tokens without text came between others, such as special tokens and parts of a
    character: their events between the first and the last text are empty, and the server counted a token for
    each. Where it counted fewer, empty events are no tokens.
    """
    rows = records.requests[answered(records.requests)]
    first, last = (np.full(records.seq_count, UNKNOWN, np.int64) for _ in range(2))
    first[rows["seq"]], last[rows["seq"]] = rows["first_text_ns"], rows["last_text_ns"]
    empty = np.zeros(records.seq_count, np.int64)
    for block in records.event_blocks():
        other = block[block["kind"] == EventKind.OTHER]
        inside = (other["stamp_ns"] > first[other["seq"]]) & (other["stamp_ns"] < last[other["seq"]])
        empty += np.bincount(other["seq"][inside], minlength=len(empty))
    between = empty[rows["seq"]]
    counted = rows["text_events"] + between <= rows["output_tokens"]
    seqs: NDArray[np.int32] = rows["seq"][(between > 0) & counted]
    return seqs


def unknown_gaps(records: Records) -> int:
    """How many gaps between text events `itl_ms` leaves out for tokens without text."""
    silent = with_silent_tokens(records)
    every, apart = (
        sum(len(gaps) for gaps in _gap_blocks(records, silent, without)) for without in (_NONE, silent)
    )
    return every - apart if len(silent) else 0


def itl_ms(records: Records) -> Floats:
    """Gaps between successive arrivals of text of one request, pooled over requests.

    Events that share a stamp came in one piece and are one arrival, and an event may carry several tokens:
    the gap is then one gap, not spread over them. Answers that were written at once have none. A gap in which
    tokens without text came is longer than one between tokens by an unknown part, and is left out.
    """
    rows = records.requests[answered(records.requests)]
    blocks = _gap_blocks(records, rows["seq"][~at_once(rows)], with_silent_tokens(records))
    return np.concatenate([np.zeros(0), *(gaps[gaps > 0] for gaps in blocks)])


# By metric: what each request has one of.
PER_REQUEST: Mapping[str, Callable[[NDArray[np.void]], Floats]] = {
    "ttft_ms": ttft_ms,
    "ttft_service_ms": ttft_service_ms,
    "ttft_answer_ms": ttft_answer_ms,
    "tpot_ms": tpot_ms,
    "e2e_ms": e2e_ms,
}


def latencies(records: Records) -> dict[str, Floats]:
    """Every one by its metric, of a cell or of some of its requests; of reasoning where there is any."""
    by_metric = {metric: values(records.requests) for metric, values in PER_REQUEST.items()}
    if reasons(records.requests):
        by_metric["ttft_reasoning_ms"] = ttft_reasoning_ms(records.requests)
    else:
        del by_metric["ttft_answer_ms"]  # it would be the TTFT again
    return by_metric | {"itl_ms": itl_ms(records)}
