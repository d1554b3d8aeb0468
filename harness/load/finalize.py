"""A finished exchange to its record: outcome, times, tokens, text and event rows."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.apis import CHAT, Api
from harness.apis.payload import error_message
from harness.load.bounds import EVENT_BYTES
from harness.load.exchange import Exchange
from harness.load.http1 import Answer, DecodeError, OversizedError
from harness.load.job import Promised
from harness.load.sse import Parsed, parse_answer
from harness.load.stamps import NONE_SHARED, TOLERANCE_NS, Shared, bounded, read_late
from harness.records.event_kind import EventKind
from harness.records.finish import Finish, finish_of
from harness.records.layout import EVENT_DTYPE, REQUEST_DTYPE, UNKNOWN, Outcome, with_text
from harness.untrusted import Secrets, one_line

ERROR_CHARS = 300
_REASON_CHARS = 64
_MODEL_CHARS = 200
_NO_GAP_NS = 10_000_000  # taken for the gap of an answer that came at once: a look may be so late
_in_order = itemgetter(*(REQUEST_DTYPE.names or ()))
# Plain numbers: an array takes four times as long to be compared with a member of an enum.
_REASONING, _VALUES = int(EventKind.REASONING), int(EventKind.VALUES)


@dataclass(frozen=True, slots=True)
class Finalized:
    row: tuple[int, ...]  # in the order of REQUEST_DTYPE
    events: NDArray[Any]  # EVENT_DTYPE
    text: str
    tool_calls: str
    finish_reason: str
    error: str
    outcome: Outcome
    generated_ns: NDArray[np.int64]  # arrivals of the events with generated text
    ttft_ns: int  # from sent; UNKNOWN without generated text
    clamped: int = 0  # reads whose stamp was impossible
    shared_events: Shared = NONE_SHARED
    items: int = 0  # vectors, scores or transcripts
    answer_id: str = ""  # by which the next turn may name this answer
    models: tuple[str, ...] = ()  # that a whole answer names


class _Received(NamedTuple):
    parsed: Parsed
    body: bytes
    events: NDArray[Any]  # EVENT_DTYPE
    stamps: NDArray[np.int64]  # of the reads, from t0
    clamped: int  # reads whose stamp was impossible
    end: int  # on CLOCK_MONOTONIC, as in the exchange
    reads: NDArray[np.int64]  # of each row of `events`, its place in `stamps`


@dataclass(frozen=True, slots=True)
class Finalizer:
    t0: int
    resolve: Callable[[Sequence[Any]], NDArray[np.int64]]  # stamps as the loop took them to CLOCK_MONOTONIC
    secrets: Secrets
    phases: NDArray[np.uint8]  # of each request of this worker's share
    worker: int
    closed_loop: bool
    promised: Promised
    api: Api = CHAT
    items: NDArray[np.int32] | None = None  # as in the job, of this worker's share
    dimensions: int | None = None

    def finalize(self, exchange: Exchange) -> Finalized:
        received = self._received(exchange)
        parsed, events = received.parsed, received.events
        outcome, error_text = self._judge(exchange, parsed, received.body)
        text = self.secrets.hidden(parsed.text())
        generated = with_text(events)
        generated_ns = events["stamp_ns"][generated]
        row = self._row(exchange, received, outcome)
        row |= {"output_chars": len(text), "text_events": len(generated_ns)}
        first, sent = row["first_text_ns"], row["sent_ns"]
        return Finalized(
            row=_in_order(row),
            events=events,
            text=text,
            tool_calls=self.secrets.hidden(parsed.tool_calls()),
            finish_reason=self._clean(parsed.finish_reason, _REASON_CHARS),
            error=self._clean(error_text),
            outcome=outcome,
            generated_ns=generated_ns,
            ttft_ns=first - sent if first != UNKNOWN else UNKNOWN,
            clamped=received.clamped,
            shared_events=self._shared(exchange, received, generated),
            items=self._items(parsed),
            answer_id=parsed.answer_id,
            models=self._models(parsed) if outcome is Outcome.OK else (),
        )

    def _received(self, exchange: Exchange) -> _Received:
        """Reads the body of the answer. Sets the failure of the exchange where it is too large to be read."""
        answer, parsed, body = exchange.answer, Parsed(), b""
        events, reads = np.zeros(0, EVENT_DTYPE), np.zeros(0, np.int64)
        if answer is None or not answer.stamps:
            return _Received(parsed, body, events, np.zeros(0, np.int64), 0, exchange.end, reads)
        arrivals, clamped = self.resolve(answer.stamps), 0
        if answer.looks:
            arrivals, clamped = bounded(arrivals, answer.looks, exchange.sent)
        stamps, end = arrivals - self.t0, max(exchange.end, int(arrivals[-1]))  # the map may have moved since
        try:
            if answer.oversized:  # reading it would hold the window up
                raise OversizedError(answer.problem)
            body, read_ends = answer.body()
        except DecodeError as error:
            parsed.malformed = str(error)
        except OversizedError as error:
            exchange.failure, exchange.error = Outcome.OVERSIZED, str(error)
        else:
            if 200 <= answer.status < 300:
                content_type, ended = answer.header(b"content-type"), exchange.failure is None
                parsed = parse_answer(body, content_type, self.api, ended=ended)
            ends = np.frombuffer(parsed.sizes, np.int32).cumsum(dtype=np.int64)
            reads = read_ends.searchsorted(ends)
            events = _event_rows(exchange.seq, parsed, stamps[reads])
        return _Received(parsed, body, events, stamps, clamped, end, reads)

    def _shared(self, exchange: Exchange, received: _Received, generated: NDArray[np.bool_]) -> Shared:
        """Late is measured by the mean gap of the answer, which reads of several events leave as it is."""
        stamps_ns = received.events["stamp_ns"][generated]
        shared = stamps_ns[1:] == stamps_ns[:-1]
        count = int(np.count_nonzero(shared))
        if not count or exchange.answer is None or not exchange.answer.looks:
            return Shared(count, 0)
        gap_ns = int(stamps_ns[-1] - stamps_ns[0]) / (len(stamps_ns) - 1)
        if gap_ns <= TOLERANCE_NS:  # no look is in time for these
            gap_ns = _NO_GAP_NS
        late = read_late(received.stamps + self.t0, exchange.answer.looks, gap_ns)
        return Shared(count, int(np.count_nonzero(late[received.reads[generated][1:][shared]])))

    def _row(self, exchange: Exchange, received: _Received, outcome: Outcome) -> dict[str, int]:
        """The fields of REQUEST_DTYPE but those of the text as it is stored, with times from t0."""
        answer, parsed, events, stamps = exchange.answer, received.parsed, received.events, received.stamps
        has_text = events["text_chars"] > 0
        text_ns, is_reasoning = events["stamp_ns"][has_text], events["kind"][has_text] == _REASONING
        values_ns = events["stamp_ns"][events["kind"] == _VALUES]
        sent = exchange.sent - self.t0 if exchange.sent != UNKNOWN else UNKNOWN
        status = answer.status if answer is not None else 0
        return {
            "seq": exchange.seq,
            "worker": self.worker,
            "phase": int(self.phases[exchange.index]),
            "outcome": outcome,
            "http_status": status or UNKNOWN,
            "intended_ns": exchange.intended - self.t0,
            "sent_ns": sent,
            "start_ns": sent if self.closed_loop and sent != UNKNOWN else exchange.intended - self.t0,
            "attempts": exchange.attempts or UNKNOWN,
            "connect_ns": exchange.connect,
            "headers_ns": int(stamps[answer.headers_read]) if answer is not None and status else UNKNOWN,
            "first_text_ns": _time_at(0, text_ns),
            "last_text_ns": _time_at(-1, values_ns if len(values_ns) else text_ns),
            "first_reasoning_ns": _time_at(0, text_ns[is_reasoning]),
            "first_answer_ns": _time_at(0, text_ns[~is_reasoning]),
            "end_ns": received.end - self.t0,
            "prompt_tokens": parsed.prompt_tokens,
            "cached_tokens": parsed.cached_tokens,
            "output_tokens": parsed.reported_tokens(),
            "reasoning_tokens": parsed.reasoning_tokens,
            "first_tokens": parsed.first_tokens,
            "retransmits": exchange.retransmits,
            "out_of_order": exchange.out_of_order,
            "wire_bytes": answer.wire_bytes if answer is not None else 0,
            "replica": exchange.replica,
        }

    def _judge(self, exchange: Exchange, parsed: Parsed, body: bytes) -> tuple[Outcome, str]:
        """The outcome and its error text. What the server said wins over what the connection did
        afterwards.
        """
        answer, failure = exchange.answer, exchange.failure
        if answer is not None and answer.status and not 200 <= answer.status < 300:
            return Outcome.HTTP_ERROR, _redirect(answer) or _page_error(body) or f"HTTP {answer.status}"
        if parsed.error:
            return Outcome.STREAM_ERROR, parsed.error
        if finish_of(parsed.finish_reason) is Finish.GIVEN_UP:
            return Outcome.ABORTED, f'the server ended the answer with finish reason "{parsed.finish_reason}"'
        if failure is not None and not (parsed.done and failure in (Outcome.TRUNCATED, Outcome.RESET)):
            return failure, exchange.error
        bounded_events = not (parsed.document or self.api.echoes)
        if bounded_events and max(parsed.sizes, default=0) > EVENT_BYTES:
            return Outcome.OVERSIZED, f"an event is longer than {EVENT_BYTES} bytes"
        if parsed.malformed:
            return Outcome.MALFORMED, parsed.malformed
        if answer is not None and not self._finished(answer, parsed):
            if not answer.framed():
                return Outcome.TRUNCATED, f"the connection closed before {self.api.end} or a finish reason"
            return Outcome.UNFINISHED, f"the answer ended without {self.api.end} and without a finish reason"
        if self.api.gives != "text":
            wrong = self._wrong_values(exchange, parsed)
            return (Outcome.MALFORMED, wrong) if wrong else (Outcome.OK, "")
        if not any(parsed.chars):
            return Outcome.EMPTY, "a complete answer without generated text"
        if self.promised.answer_id and not parsed.answer_id:
            return Outcome.MALFORMED, "an answer without the id by which the next turn would name it"
        return Outcome.OK, ""

    def _wrong_values(self, exchange: Exchange, parsed: Parsed) -> str:
        """What is wrong with the vectors or scores of an answer; "" if nothing."""
        vectors, came = self.api.gives == "vectors", self._items(parsed)
        if self.items is not None and came != (asked := int(self.items[exchange.index])):
            what = "vectors for {} texts" if vectors else "scores for {} documents"
            return f"{came} {what.format(asked)}"
        if vectors and self.dimensions not in (None, size := len(parsed.values[0]) if came else 0):
            return f"vectors of {size} numbers, {self.dimensions} were requested"
        return "" if came else f"a complete answer without {self.api.gives}"

    def _items(self, parsed: Parsed) -> int:
        if self.api.gives == "transcripts":
            return parsed.kinds.count(EventKind.VALUES)
        return len(parsed.values) if self.api.gives == "vectors" else sum(map(len, parsed.values))

    def _finished(self, answer: Answer, parsed: Parsed) -> bool:
        """Whether the server marked the end of the answer, if it promised to."""
        if parsed.done or parsed.finish_reason:
            return True
        if parsed.document:
            return not self.promised.finish_reason
        return answer.framed() and not (self.promised.done or self.promised.finish_reason)

    def _models(self, parsed: Parsed) -> tuple[str, ...]:
        names = (self._clean(name, _MODEL_CHARS) for name in parsed.models)
        return tuple(filter(None, dict.fromkeys(names)))

    def _clean(self, text: str, most_chars: int = ERROR_CHARS) -> str:
        """One inert line without the job's credentials, which servers like to repeat."""
        return one_line(self.secrets.hidden(text), most_chars) if text else ""


def _event_rows(seq: int, parsed: Parsed, stamps: NDArray[np.int64]) -> NDArray[Any]:
    rows = np.zeros(len(parsed.kinds), EVENT_DTYPE)
    rows["seq"] = seq
    rows["kind"] = np.frombuffer(parsed.kinds, np.uint8)
    rows["text_chars"] = parsed.chars
    rows["wire_bytes"] = parsed.sizes
    rows["stamp_ns"] = stamps
    return rows


def _time_at(position: int, times: NDArray[np.int64]) -> int:
    return int(times[position]) if len(times) else UNKNOWN


def _redirect(answer: Answer) -> str:
    """The address that the server sends the client to, in words; "" where it names none. It is not asked."""
    target = answer.headers.get(b"location", b"").strip().decode("utf-8", "replace")
    return f"a redirect to {target}" if target and 300 <= answer.status < 400 else ""


def _page_error(body: bytes) -> str:
    """The message in an error body, or the start of whatever page it is."""
    text = body[:65536].decode("utf-8", "replace")
    try:
        return error_message(json.loads(text)) or text
    except (ValueError, RecursionError):
        return text
