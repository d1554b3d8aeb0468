"""The stamps of a cell's answers as another tool would have taken them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import joined
from harness.metrics.view import Floats, Mask, RequestView
from harness.records.layout import UNKNOWN, EventKind, Outcome, Phase, Records, with_text

Marks = Callable[[NDArray[np.void]], Mask]  # of events: those that a tool takes times from
NS_PER_MS = 1e6
_WITHOUT_CHOICES = ("responses", "messages")


@dataclass(frozen=True, slots=True)
class Answers:
    """Arrays are parallel: one entry per successful measured request. Times in ms from the cell's t0."""

    intended: Floats  # NaN where not known
    sent: Floats
    connect: Floats  # waited for a connection before it was sent
    first_choice: Floats  # first event with a choice, text or not
    last_choice: Floats
    first_text: Floats
    last_text: Floats
    last_event: Floats  # [DONE], usage, whatever came last
    end: Floats
    tokens: Floats  # the server's usage, else its text events
    text_events: Floats
    choice_gaps: Floats  # between successive events with a choice, pooled
    text_gaps: Floats  # between successive text events, pooled
    first_prose: Floats  # first text that is no tool call; far in the future where none came
    prose_gaps: Floats
    # Rates are of these: measured requests, and users who would have hung up and were answered before.
    answered: int
    answered_tokens: float
    begun: float  # the earliest start
    ended: float  # the latest end, failed ones included
    last_answer: float  # the latest last text
    failed: int
    usage_alone: bool  # whether a chunk had usage and no choice
    handshake: float  # median time of a TCP handshake of this cell, ms; 0 where none was timed


def take(records: Records, handshake_ms: float | None, api: str) -> Answers | None:
    """None where no measured request succeeded. Where the events of an API have no choices, texts count."""
    rows, measured = records.requests, RequestView(records).measured
    well = (rows["outcome"] == Outcome.OK) & (rows["first_text_ns"] != UNKNOWN)
    if not (measured & well).any():
        return None
    good = rows[measured & well]
    counted = measured | (well & (rows["phase"] == Phase.IMPATIENT))
    answered, sent = counted & well, counted & (rows["sent_ns"] != UNKNOWN)
    begun_ns = rows["sent_ns"][sent] - np.maximum(rows["connect_ns"][sent], 0)
    # A chunk has a choice with role-only and empty deltas, text, and the finish reason. Older records hide
    # those without text to which an engine added its usage.
    has_choice = with_text if api in _WITHOUT_CHOICES else _with_choice
    first_prose, _ = _ends(records, _with_prose, good["seq"])
    first_choice, last_choice = _ends(records, has_choice, good["seq"])
    _, last_event = _ends(records, _no_comment, good["seq"])
    text_gaps = _gaps(records, with_text, good["seq"])
    return Answers(
        intended=np.where(good["intended_ns"] == UNKNOWN, np.nan, good["intended_ns"] / NS_PER_MS),
        sent=good["sent_ns"] / NS_PER_MS,
        connect=np.maximum(good["connect_ns"], 0) / NS_PER_MS,
        first_choice=first_choice,
        last_choice=last_choice,
        first_text=good["first_text_ns"] / NS_PER_MS,
        last_text=good["last_text_ns"] / NS_PER_MS,
        last_event=last_event,
        end=good["end_ns"] / NS_PER_MS,
        tokens=_tokens(good),
        text_events=good["text_events"].astype(np.float64),
        choice_gaps=_gaps(records, has_choice, good["seq"]),
        text_gaps=text_gaps,
        first_prose=first_prose,
        prose_gaps=_gaps(records, _with_prose, good["seq"])
        if _any(records, EventKind.TOOL_CALL)
        else text_gaps,
        answered=int(np.count_nonzero(answered)),
        answered_tokens=float(_tokens(rows)[answered].sum()),
        begun=float(begun_ns.min()) / NS_PER_MS,
        ended=float(rows["end_ns"][sent].max()) / NS_PER_MS,
        last_answer=float(rows["last_text_ns"][answered].max()) / NS_PER_MS,
        failed=int(np.count_nonzero(measured & (rows["outcome"] != Outcome.OK))),
        usage_alone=_any(records, EventKind.USAGE),
        handshake=handshake_ms or 0.0,
    )


def _tokens(rows: NDArray[np.void]) -> Floats:
    reported = rows["output_tokens"] > 0  # records before 0.2 may say 0 of an answer with text
    return np.where(reported, rows["output_tokens"], rows["text_events"]).astype(np.float64)


def _with_choice(events: NDArray[np.void]) -> Mask:
    kept: Mask = with_text(events) | (events["kind"] == EventKind.OTHER)
    return kept


def _with_prose(events: NDArray[np.void]) -> Mask:
    kept: Mask = with_text(events) & (events["kind"] != EventKind.TOOL_CALL)
    return kept


def _no_comment(events: NDArray[np.void]) -> Mask:
    kept: Mask = events["kind"] != EventKind.COMMENT
    return kept


def _ends(records: Records, counts: Marks, wanted: NDArray[np.int32]) -> tuple[Floats, Floats]:
    first = np.full(records.seq_count, np.iinfo(np.int64).max)
    last = np.full(records.seq_count, np.iinfo(np.int64).min)
    for block in records.event_blocks():
        kept = counts(block)
        # Arrays of their own: on fields of packed rows `at` takes five times as long.
        seqs, stamps_ns = block["seq"][kept].astype(np.intp), block["stamp_ns"][kept]
        np.minimum.at(first, seqs, stamps_ns)
        np.maximum.at(last, seqs, stamps_ns)
    return first[wanted] / NS_PER_MS, last[wanted] / NS_PER_MS


def _any(records: Records, kind: EventKind) -> bool:
    return any((block["kind"] == kind).any() for block in records.event_blocks())


def _gaps(records: Records, counts: Marks, wanted: NDArray[np.int32]) -> Floats:
    return joined(_gap_blocks(records, counts, wanted), len(records.events))


def _gap_blocks(records: Records, counts: Marks, wanted: NDArray[np.int32]) -> Iterator[Floats]:
    chosen = np.zeros(records.seq_count, np.bool_)
    chosen[wanted] = True
    seqs, stamps_ns = np.zeros(0, np.int32), np.zeros(0, np.int64)
    for block in records.event_blocks():
        kept = counts(block) & chosen[block["seq"]]
        # Two columns alone: copies of whole rows took most of the time.
        seqs = np.concatenate([seqs[-1:], block["seq"][kept]])
        stamps_ns = np.concatenate([stamps_ns[-1:], block["stamp_ns"][kept]])
        yield np.diff(stamps_ns)[seqs[1:] == seqs[:-1]] / NS_PER_MS
