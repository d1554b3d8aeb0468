"""Latencies in milliseconds, from the two clocks a request has: start and sent.

Only measured requests are looked at. A latency that was never reached (failed, dropped, timed out) is +inf: a
failure can push a percentile up or out of reach, never down. Gaps between arrivals are of answers only.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import joined, latency_stats
from harness.metrics.reason import NOT_COUNTED, OfServer
from harness.metrics.view import CellView, Figures, Floats, Mask, RequestView, Rows
from harness.model import METRICS, LatencyStats, family
from harness.records.layout import GENERATED, UNKNOWN, EventKind, Outcome, Records, with_text

_NS_PER_MS = 1e6
_NONE: NDArray[np.int32] = np.zeros(0, np.int32)
# No server generates one answer at 50,000 tokens/s: text that came faster was written at once, and what
# lies between its reads is the network's time.
LEAST_GAP_NS = 20_000
_OF_GAPS = ("itl_ms",)  # an answer has many of them, which are not independent of each other


def compute(cell: CellView) -> Figures:
    """Every latency but those of `compute_of_reasoning`."""
    return _described(cell, tuple(name for name in LATENCIES if name not in OF_REASONING))


def compute_of_reasoning(cell: CellView) -> Figures:
    """Waits for reasoning and for the answer after it; without reasoning they would be the TTFT again."""
    if reasons(cell):
        return _described(cell, OF_REASONING)
    why = OfServer("no answer has reasoning text")
    return Figures(dict.fromkeys(OF_REASONING, why), **dict.fromkeys(OF_REASONING))


def _described(cell: CellView, names: tuple[str, ...]) -> Figures:
    stats: dict[str, LatencyStats] = {}
    nulls: dict[str, str] = {}
    for name in names:
        values = cell.of(values_ms)[name]
        stats[name], reasons = stats_of(name, values)
        none = why_no_gaps(cell) if name in ("tpot_ms", "itl_ms") and not len(values) else ""
        nulls.update({f"{name}.{key}": none or reason for key, reason in reasons.items()})
    return Figures(nulls, **stats)


def stats_of(name: str, values: Floats) -> tuple[LatencyStats, dict[str, str]]:
    """The statistics of a latency, and the reason for each that is null."""
    return latency_stats(values, independent=name not in _OF_GAPS)


def values_ms(view: RequestView) -> dict[str, Floats]:
    """The latencies by metric, one value per measured request; those of reasoning only if any answer has
    it.
    """
    names = [name for name in LATENCIES if name not in OF_REASONING or reasons(view)]
    return {name: of_metric(view, name) for name in names}


def median_ms(view: RequestView, name: str) -> float | None:
    """The median of the requests that have this latency; None where none has."""
    values = of_metric(view, name)
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None


def of_metric(view: RequestView, name: str) -> Floats:
    """One latency: of each measured request, or of those that can have it."""
    span = METRICS[name].span
    return _OWN[name](view) if span is None else span_ms(view, *span)


def span_ms(view: RequestView, start: str, stop: str) -> Floats:
    """Time from one stamp to another, per measured request; +inf if the second was never reached."""
    rows = view.measured_requests
    good = (rows["outcome"] == Outcome.OK) & (rows[stop] != UNKNOWN) & (rows[start] != UNKNOWN)
    return np.where(good, (rows[stop] - rows[start]) / _NS_PER_MS, np.inf)


def ttft_reasoning_ms(view: RequestView) -> Floats:
    """First reasoning event minus the start, of the good answers that have one."""
    rows = view.answers[view.answers["first_reasoning_ns"] != UNKNOWN]
    waits: Floats = (rows["first_reasoning_ns"] - rows["start_ns"]) / _NS_PER_MS
    return waits


def reasons(view: RequestView) -> bool:
    """Whether any request, of any phase, came with reasoning."""
    return bool((view.requests["first_reasoning_ns"] != UNKNOWN).any())


def unseen_tokens(requests: Rows) -> NDArray[np.int64]:
    """Output tokens ahead of the first text event, one per row: reasoning that the server counts and keeps to
    itself. With more events than tokens after it, it is among the text.
    """
    thoughts, events = requests["reasoning_tokens"], requests["text_events"]
    without_text = requests["first_reasoning_ns"] == UNKNOWN
    kept = without_text & (thoughts > 0) & (events <= requests["output_tokens"] - thoughts)
    return np.where(kept, thoughts, 0)


def first_tokens(requests: Rows) -> NDArray[np.int64]:
    """Output tokens up to the first text event and with it, one per row; UNKNOWN where that cannot be known.

    Where the server did not count them, they are known of answers with an event for each token. A last
    token without text, the end of the answer, has none.
    """
    uncounted = np.where(_one_each(requests), 1 + unseen_tokens(requests), UNKNOWN)
    return np.where(requests["first_tokens"] != UNKNOWN, requests["first_tokens"], uncounted)


def _one_each(requests: Rows) -> Mask:
    """Answers with an event for each token, a last token without text apart."""
    tokens, events = requests["output_tokens"] - unseen_tokens(requests), requests["text_events"]
    mask: Mask = (tokens != UNKNOWN) & ((events == tokens) | (events == tokens - 1))
    return mask


def per_token_ms(requests: Rows) -> Floats:
    """(last text event - first) / (output tokens - tokens of the first arrival), one per row.

    NaN for answers of one token, in one event, or written at once. A first arrival of unknown tokens is taken
    for one token.
    """
    first = first_tokens(requests)
    later = requests["output_tokens"] - np.where(first == UNKNOWN, 1 + unseen_tokens(requests), first)
    spans = (requests["last_text_ns"] - requests["first_text_ns"]) / _NS_PER_MS / np.maximum(later, 1)
    return np.where((later > 0) & (requests["text_events"] >= 2) & ~at_once(requests), spans, np.nan)


def at_once(requests: Rows) -> Mask:
    """Answers of several tokens or events whose text came as one piece: they have no gaps.

    A last token without text, the end of the answer, is not a piece.
    """
    pieces = np.maximum(requests["output_tokens"] - unseen_tokens(requests) - 1, requests["text_events"])
    spans_ns = requests["last_text_ns"] - requests["first_text_ns"]
    mask: Mask = (
        (requests["first_text_ns"] != UNKNOWN) & (pieces >= 2) & (spans_ns < LEAST_GAP_NS * (pieces - 1))
    )
    return mask


def why_no_gaps(view: RequestView) -> str:
    """The reason no answer has a gap between tokens."""
    rows = view.answers
    if not len(rows):
        return "no request has this value"
    whole = int(np.count_nonzero(at_once(rows)))
    if (rows["output_tokens"] == UNKNOWN).all() and not whole:
        return NOT_COUNTED
    if whole:
        return f"{whole} of {len(rows)} answers came at once: the gaps between their tokens are not known"
    return "no answer has two tokens that are known to have come apart"


def first_arrivals(records: Records) -> Iterator[Rows]:
    """Yields the rows of the text events that came as one with the first of their request, in blocks."""
    rows = records.requests
    first_ns = np.full(records.seq_count, np.iinfo(np.int64).min // 2)
    first_ns[rows["seq"]] = rows["first_text_ns"]
    for block in records.event_blocks():
        text = block[np.isin(block["kind"], GENERATED)]
        yield text[text["stamp_ns"] - first_ns[text["seq"]] < LEAST_GAP_NS]


def by_arrival(records: Records) -> Records:
    """The records with `first_tokens` of the first arrival, which may hold several events.

    Tokens that come with the first have no gap to it, so no part of the time after it is theirs.
    """
    rows, counts = records.requests, np.zeros(records.seq_count, np.int64)
    for text in first_arrivals(records):
        counts += np.bincount(text["seq"][with_text(text)], minlength=len(counts))
    together = counts[rows["seq"]]
    first, events = first_tokens(rows), np.maximum(rows["text_events"], 2)
    spread = (rows["output_tokens"] - first) / (events - 1)
    each = np.where(_one_each(rows), 1.0, spread)  # tokens of an event after the first
    known = (together > 1) & (first != UNKNOWN) & (rows["output_tokens"] != UNKNOWN)
    if not known.any():
        return records
    rows = rows.copy()
    rows["first_tokens"][known] = np.rint(first + (together - 1) * each)[known]
    return replace(records, requests=rows)


def after_summaries(view: RequestView) -> Rows:
    """The measured requests, with the answer alone of those whose reasoning came as a summary.

    Reasoning with fewer letters than tokens is one: nobody can say how many tokens came before which part.
    """
    rows, records = view.measured_requests, view.records
    if not ((rows["first_reasoning_ns"] != UNKNOWN) & (rows["reasoning_tokens"] > 0)).any():
        return rows
    letters, events = np.zeros(records.seq_count), np.zeros(records.seq_count, np.int64)
    for block in records.event_blocks():
        thought = block[block["kind"] == EventKind.REASONING]
        letters += np.bincount(thought["seq"], thought["text_chars"], len(letters))
        answer = block[np.isin(block["kind"], (EventKind.TEXT, EventKind.TOOL_CALL))]
        events += np.bincount(answer["seq"], minlength=len(events))
    thoughts = (rows["first_reasoning_ns"] != UNKNOWN) & (rows["output_tokens"] != UNKNOWN)
    short = thoughts & (letters[rows["seq"]] < rows["reasoning_tokens"])
    rows = rows.copy()
    rows["output_tokens"][short] -= rows["reasoning_tokens"][short]
    rows["text_events"][short] = events[rows["seq"]][short]
    rows["first_text_ns"][short] = rows["first_answer_ns"][short]
    rows["first_tokens"][short], rows["reasoning_tokens"][short] = UNKNOWN, UNKNOWN
    return rows


def tpot_of_each_ms(view: RequestView) -> Floats:
    """`per_token_ms` of each measured request; +inf for one that failed, whatever came before."""
    rows = view.of(after_summaries)
    return np.where(rows["outcome"] == Outcome.OK, per_token_ms(rows), np.inf)


def tpot_ms(view: RequestView) -> Floats:
    """`tpot_of_each_ms` of the measured requests that have one.

    A failed request does not show whether its answer would have had one. It counts, unless no answer has
    one: then a single token was asked for, or the server sends answers at once.
    """
    spans = tpot_of_each_ms(view)
    spans = spans[~np.isnan(spans)]
    return spans if np.isfinite(spans).any() or not len(view.answers) else spans[:0]


def event_gaps_ms(view: RequestView) -> Floats:
    """Gaps between successive text-carrying events of one request, pooled; 0 for events of one arrival."""
    return joined(_gap_blocks(view.records, view.answers["seq"]), len(view.records.events))


def _gap_blocks(
    records: Records, wanted: NDArray[np.int32], apart: NDArray[np.int32] = _NONE
) -> Iterator[Floats]:
    """`apart`: requests whose gaps count only where no event without text lies in them."""
    chosen, divided = (np.zeros(records.seq_count, np.bool_) for _ in range(2))
    chosen[wanted], divided[apart] = True, True
    # Columns of their own: copies of whole rows took half of the time.
    seqs, stamps_ns, generated = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_)
    for block in records.event_blocks():
        kept = text = with_text(block)
        if len(apart):
            kept = text | ((block["kind"] == EventKind.OTHER) & divided[block["seq"]])
        kept = kept & chosen[block["seq"]]
        seqs = np.concatenate([seqs[-1:], block["seq"][kept]])
        stamps_ns = np.concatenate([stamps_ns[-1:], block["stamp_ns"][kept]])
        generated = np.concatenate([generated[-1:], text[kept]])
        gaps = (seqs[1:] == seqs[:-1]) & generated[1:] & generated[:-1]
        yield np.diff(stamps_ns)[gaps] / _NS_PER_MS


def with_silent_tokens(view: RequestView) -> NDArray[np.int32]:
    """The answers in which tokens without text, such as special tokens and parts of a character, came between
    others.

    Their events between the first and the last text are empty, and the server counted a token for each.
    Where it counted fewer, empty events are not tokens.
    """
    records, rows = view.records, view.answers
    first, last = (np.full(records.seq_count, UNKNOWN, np.int64) for _ in range(2))
    first[rows["seq"]], last[rows["seq"]] = rows["first_text_ns"], rows["last_text_ns"]
    empty = np.zeros(records.seq_count, np.int64)
    for block in records.event_blocks():
        other = block[block["kind"] == EventKind.OTHER]
        inside = (other["stamp_ns"] > first[other["seq"]]) & (other["stamp_ns"] < last[other["seq"]])
        empty += np.bincount(other["seq"][inside], minlength=len(empty))
    between = empty[rows["seq"]]
    counted = rows["text_events"] + between <= rows["output_tokens"] - unseen_tokens(rows)
    seqs: NDArray[np.int32] = rows["seq"][(between > 0) & counted]
    return seqs


def unknown_gaps(view: RequestView) -> int:
    """The number of gaps that `itl_ms` leaves out for tokens without text."""
    silent = np.intersect1d(view.of(with_silent_tokens), _with_gaps(view))
    if not len(silent):
        return 0
    every, apart = (
        sum(np.count_nonzero(gaps > 0) for gaps in _gap_blocks(view.records, silent, without))
        for without in (_NONE, silent)
    )
    return int(every - apart)


def _with_gaps(view: RequestView) -> NDArray[np.int32]:
    """The answers that were not written at once."""
    seqs: NDArray[np.int32] = view.answers["seq"][~at_once(view.answers)]
    return seqs


def itl_ms(view: RequestView) -> Floats:
    """Gaps between successive arrivals of text of one request, pooled over requests.

    Events that share a stamp came in one piece and are one arrival, and an event may carry several tokens:
    the gap is then one gap, not spread over them. Answers that were written at once have none. A gap in which
    tokens without text came is longer than one between tokens by an unknown part, and is left out.

    They are ascending, since there are as many as tokens, and each statistic would sort a copy.
    """
    blocks = _gap_blocks(view.records, _with_gaps(view), view.of(with_silent_tokens))
    gaps_ms = joined((gaps[gaps > 0] for gaps in blocks), len(view.records.events))
    gaps_ms.sort()
    return gaps_ms


# What no span of two stamps gives, by metric.
_OWN: Mapping[str, Callable[[RequestView], Floats]] = {
    "tpot_ms": tpot_ms,
    "itl_ms": itl_ms,
    "ttft_reasoning_ms": ttft_reasoning_ms,
}
# In the order of the reasons for their nulls: what each request has one of, then the others.
LATENCIES = tuple(
    metric.name
    for metric in sorted(family("latency"), key=lambda declared: not declared.per_request)
    if metric.of_stamps
)
OF_REASONING = ("ttft_reasoning_ms", "ttft_answer_ms")
