"""How engines stream: a script rendered into timed writes, with the habits that clients must survive.

The first event carries exactly one token and leaves on the TTFT whatever the habits are, so that
the known TTFT stays known. Later events are due with their last token, later writes with their
last event; the finish chunk, usage and [DONE] leave with the last token.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

from harness.truth.ask import Ask
from harness.truth.script import NS_PER_MS, VOCABULARIES, Script, Then, Write, text
from harness.truth.wire import LAST_CHUNK, chunk, head

Role = Literal["none", "early", "first"]
Usage = Literal["asked", "final", "each", "never"]
Framing = Literal["chunked", "content-length", "close"]

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _dump(value: Any) -> bytes:
    """Text as UTF-8 and not as \\u escapes, as the engines send it."""
    return _encoder.encode(value).encode()


def _sse(document: Mapping[str, Any]) -> bytes:
    return b"data: " + _dump(document) + b"\n\n"


JSON_NUL = b"\\u0000"  # marks where the text goes in an event that is rendered once and filled per token
JSON_WORDS = {name: tuple(_dump(word)[1:-1] for word in words) for name, words in VOCABULARIES.items()}


@dataclass(frozen=True, slots=True)
class Habits:
    role: Role = "first"  # the role-only chunk: none, at once on admission, or with the first token
    empty_delta_every: int = 0  # an empty delta ahead of every so many events; 0: none
    reasoning_tokens: int = 0  # so many tokens come as reasoning first
    reasoning_field: str = "reasoning_content"
    tokens_per_event: int = 1
    events_per_write: int = 1
    keepalive_ms: float = 0.0  # an SSE comment after so long a silence; 0: none
    crlf: bool = False
    no_done: bool = False
    usage: Usage = "asked"
    framing: Framing = "chunked"
    gzip: bool = False
    late_headers: bool = False  # the response head leaves with the first write of the body
    early_hints: bool = False  # a 103 ahead of the response head
    vocabulary: str = "ascii"


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything one 200 answer is rendered from."""

    ask: Ask
    script: Script
    habits: Habits
    answer_id: str
    created: int  # Unix seconds
    model: str
    wrong_usage: bool = False

    def body(self) -> Iterator[Write]:
        return self._stream() if self.ask.stream else self._whole()

    def _whole(self) -> Iterator[Write]:
        tokens, reasoning = self.script.tokens, self._reasoning_tokens
        content = text(self.habits.vocabulary, reasoning, tokens)
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": self.script.finish_reason}
        if self.ask.chat:
            message = {"role": "assistant", "content": content}
            if reasoning:
                message[self.habits.reasoning_field] = text(self.habits.vocabulary, 0, reasoning)
            choice["message"] = message
        else:
            choice["text"] = content
        document = self._document("chat.completion" if self.ask.chat else "text_completion", [choice])
        if self.habits.usage != "never":
            document["usage"] = self._usage(tokens)
        *_, last_ns = self.script.dues_ns
        yield Write(last_ns, _dump(document), 1, tokens, Then.END)

    def _stream(self) -> Iterator[Write]:
        role = self._event({"role": "assistant", "content": ""}) if self.ask.chat else b""
        if self.habits.role == "early" and role:
            yield Write(0, role)
        pending = role if self.habits.role == "first" else b""
        events = tokens = sent = 0
        for number, event in enumerate(self._text_events()):
            if self.habits.empty_delta_every and number % self.habits.empty_delta_every == 0:
                pending += self._event({"content": ""})
            pending += event.data
            events += 1
            tokens += event.tokens
            last = sent + tokens == self.script.tokens
            if sent and events < self.habits.events_per_write and not last:
                continue
            then = Then.MORE
            if last:
                pending += self._tail()
                then = Then.END
            yield Write(event.due_ns, pending, events, tokens, then)
            sent += tokens
            pending = b""
            events = tokens = 0

    def _text_events(self) -> Iterator[Write]:
        """One write per event that carries text."""
        words = JSON_WORDS[self.habits.vocabulary]
        reasoning, total = self._reasoning_tokens, self.script.tokens
        usage_each = self._usage_each
        sent = 0
        for field, end in ((self.habits.reasoning_field, reasoning), ("content", total)):
            if sent == end:
                continue
            prefix, suffix = self._event({field: "\0"}).split(JSON_NUL)
            while sent < end:
                size = min(self.habits.tokens_per_event, end - sent) if sent else 1
                *_, last_ns = islice(self.script.dues_ns, size)
                data = b"".join(words[index % len(words)] for index in range(sent, sent + size))
                sent += size
                if usage_each:
                    suffix = self._event({field: "\0"}, usage_tokens=sent).split(JSON_NUL)[1]
                yield Write(last_ns, prefix + data + suffix, 1, size)

    def _tail(self) -> bytes:
        total = self.script.tokens
        usage_each = self._usage_each
        tail = self._event({}, finish=self.script.finish_reason, usage_tokens=total if usage_each else None)
        if self.habits.usage == "final" or (self.habits.usage == "asked" and self.ask.include_usage):
            tail += _sse({**self._document(self._chunk_object, []), "usage": self._usage(total)})
        return tail if self.habits.no_done else tail + b"data: [DONE]\n\n"

    @property
    def _usage_each(self) -> bool:
        return self.habits.usage == "each" or (self.habits.usage == "asked" and self.ask.continuous_usage)

    @property
    def _chunk_object(self) -> str:
        return "chat.completion.chunk" if self.ask.chat else "text_completion"

    @property
    def _reasoning_tokens(self) -> int:
        return min(self.habits.reasoning_tokens, self.script.tokens) if self.ask.chat else 0

    def _event(
        self, delta: Mapping[str, str], *, finish: str | None = None, usage_tokens: int | None = None
    ) -> bytes:
        choice: dict[str, Any] = {"index": 0}
        if self.ask.chat:
            choice["delta"] = delta
        else:
            choice["text"] = delta.get("content", "")
        choice |= {"logprobs": None, "finish_reason": finish}
        document = self._document(self._chunk_object, [choice])
        if usage_tokens is not None:
            document["usage"] = self._usage(usage_tokens)
        return _sse(document)

    def _document(self, object_name: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.answer_id,
            "object": object_name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": "simulated",
            "choices": choices,
        }

    def _usage(self, completion_tokens: int) -> dict[str, Any]:
        if self.wrong_usage:
            completion_tokens = 2 * completion_tokens + 1
        prompt_tokens = self.script.prompt_tokens
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.script.cached_tokens},
        }


def streamed(body: Iterator[Write], habits: Habits) -> Iterator[Write]:
    """The habits that a stream has whatever it says."""
    if habits.keepalive_ms:
        body = _kept_alive(body, round(habits.keepalive_ms * NS_PER_MS))
    if habits.crlf:  # a line end inside JSON text is escaped, so every one found ends a line
        body = (write._replace(data=write.data.replace(b"\n", b"\r\n")) for write in body)
    return body


def _kept_alive(body: Iterable[Write], silence_ns: int) -> Iterator[Write]:
    """A comment whenever nothing else was due for so long."""
    last_ns = 0
    for write in body:
        for due_ns in range(last_ns + silence_ns, write.due_ns, silence_ns):
            yield Write(due_ns, b": keepalive\n\n")
        yield write
        last_ns = write.due_ns


def _gzipped(body: Iterable[Write]) -> Iterator[Write]:
    """Flushed at every write, so that a client can read each as it comes."""
    gzip = zlib.compressobj(wbits=31)
    for write in body:
        mode = zlib.Z_SYNC_FLUSH if write.then is Then.MORE else zlib.Z_FINISH
        yield write._replace(data=gzip.compress(write.data) + gzip.flush(mode))


def framed(
    body: Iterator[Write], habits: Habits, *, stream: bool, gzip: bool, close: bool
) -> Iterator[Write]:
    """The body as an HTTP answer, head included. What is not a stream is always sent with its length.

    `close`: the client asked for the connection to be closed.
    """
    framing = habits.framing if stream else "content-length"
    fields: dict[str, str | int] = {
        "content-type": "text/event-stream; charset=utf-8" if stream else "application/json"
    }
    if gzip:
        fields["content-encoding"] = "gzip"
        body = _gzipped(body)
    match framing:
        case "chunked":
            fields["transfer-encoding"] = "chunked"
            body = map(_chunked, body)
        case "content-length":
            writes = list(body)
            fields["content-length"] = sum(len(write.data) for write in writes)
            body = iter(writes)
    if close or framing == "close":
        fields["connection"] = "close"
    hints = head(103, {"link": "</>; rel=preconnect"}) if habits.early_hints else b""
    first = hints + head(200, fields)
    if stream and not habits.late_headers:
        return chain((Write(0, first),), body)
    write = next(body)
    return chain((write._replace(data=first + write.data),), body)


def _chunked(write: Write) -> Write:
    data = chunk(write.data) + (LAST_CHUNK if write.then is Then.END else b"")
    return write._replace(data=data)
