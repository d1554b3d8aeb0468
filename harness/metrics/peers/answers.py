"""The stamps of a cell's answers as another tool would have taken them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics.view import RequestView
from harness.records.layout import UNKNOWN, EventKind, Outcome, Phase, Records, with_text

Floats = NDArray[np.float64]
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
    handshake: float  # median time of a TCP handshake of this cell, ms; 0 where none was timed


def take(records: Records, handshake_ms: float | None, api: str) -> Answers | None:
    """None where no measured request succeeded. Where the events of an API have no choices, texts count."""
    rows = RequestView(records).measured_requests
    good = _answered(rows)
    if not len(good):
        return None
    in_time = _answered(records.requests[records.requests["phase"] == Phase.IMPATIENT])
    counted = np.concatenate([rows, in_time])
    answered, sent = _answered(counted), counted[counted["sent_ns"] != UNKNOWN]
    events = records.events
    choices = texts = events[with_text(events)]
    if api not in _WITHOUT_CHOICES:
        # Role-only and empty deltas, text, and the finish chunk. Older records hide those without text to
        # which an engine added its usage.
        choices = events[with_text(events) | (events["kind"] == EventKind.OTHER)]
    prose = texts[texts["kind"] != EventKind.TOOL_CALL]
    first_prose, _ = _ends(prose, good["seq"], records.seq_count)
    first_choice, last_choice = _ends(choices, good["seq"], records.seq_count)
    _, last_event = _ends(events[events["kind"] != EventKind.COMMENT], good["seq"], records.seq_count)
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
        choice_gaps=_gaps(choices, good["seq"]),
        text_gaps=_gaps(texts, good["seq"]),
        first_prose=first_prose,
        prose_gaps=_gaps(prose, good["seq"]),
        answered=len(answered),
        answered_tokens=float(_tokens(answered).sum()),
        begun=float((sent["sent_ns"] - np.maximum(sent["connect_ns"], 0)).min()) / NS_PER_MS,
        ended=float(sent["end_ns"].max()) / NS_PER_MS,
        last_answer=float(answered["last_text_ns"].max()) / NS_PER_MS,
        failed=int(np.count_nonzero(rows["outcome"] != Outcome.OK)),
        handshake=handshake_ms or 0.0,
    )


def _answered(rows: NDArray[np.void]) -> NDArray[np.void]:
    answered: NDArray[np.void] = rows[(rows["outcome"] == Outcome.OK) & (rows["first_text_ns"] != UNKNOWN)]
    return answered


def _tokens(rows: NDArray[np.void]) -> Floats:
    reported = rows["output_tokens"] > 0  # records before 0.2 may say 0 of an answer with text
    return np.where(reported, rows["output_tokens"], rows["text_events"]).astype(np.float64)


def _ends(events: NDArray[np.void], wanted: NDArray[np.int32], count: int) -> tuple[Floats, Floats]:
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, events["seq"], events["stamp_ns"])
    np.maximum.at(last, events["seq"], events["stamp_ns"])
    return first[wanted] / NS_PER_MS, last[wanted] / NS_PER_MS


def _gaps(events: NDArray[np.void], wanted: NDArray[np.int32]) -> Floats:
    mine = events[np.isin(events["seq"], wanted)]
    gaps: Floats = np.diff(mine["stamp_ns"]) / NS_PER_MS
    same: NDArray[np.bool_] = mine["seq"][1:] == mine["seq"][:-1]
    kept: Floats = gaps[same]
    return kept
