"""A script rendered into the timed writes of one 200 answer, in the shape and with the habits of an engine.

The first event carries exactly one token and leaves on the TTFT whatever the habits are, so that
the known TTFT stays known. Later events are due with their last token, later writes with their
last event; the finish chunk, usage and [DONE] leave with the last token.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

from harness.mockserver.ask import Ask
from harness.mockserver.habits import Habits
from harness.mockserver.script import NS_PER_MS, VOCABULARIES, Script, Then, Write, text
from harness.mockserver.shape import Shape

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dump(value: Any) -> bytes:
    """Text as UTF-8 and not as \\u escapes, as the engines send it."""
    return _encoder.encode(value).encode()


def sse(document: Mapping[str, object]) -> bytes:
    return b"data: " + dump(document) + b"\n\n"


def cut_at_text(event: bytes) -> tuple[bytes, bytes]:
    before, after = event.split(JSON_NUL)
    return before, after


def _quoted(words: Sequence[str]) -> tuple[bytes, ...]:
    """Returns the words as they stand inside a JSON string."""
    return tuple(dump(word)[1:-1] for word in words)


JSON_NUL = b"\\u0000"  # marks where the text goes in an event that is rendered once and filled per token
JSON_WORDS = {name: _quoted(words) for name, words in VOCABULARIES.items()}


class Piece(NamedTuple):
    """The text of one event."""

    thought: bool  # reasoning, ahead of the content
    due_ns: int
    data: bytes  # as it stands inside a JSON string
    before: int  # tokens ahead of it
    tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    ask: Ask
    script: Script
    habits: Habits
    answer_id: str
    created: int  # Unix seconds
    model: str
    shape: Shape = field(default_factory=Shape)
    wrong_usage: bool = False
    completions_usage: Literal["asked", "finish"] = "asked"

    def body(self) -> Iterator[Write]:
        return self._stream() if self.ask.stream else self._whole()

    def _whole(self) -> Iterator[Write]:
        first_ns, *rest_ns = self.script.dues_ns
        last_ns = rest_ns[-1] if rest_ns else first_ns
        data = dump(self._whole_document(first_ns, last_ns))
        yield Write(last_ns, data, 1, self.script.tokens, Then.END)

    def _whole_document(self, first_ns: int, last_ns: int) -> Mapping[str, object]:
        tokens, reasoning, shape = self.script.tokens, self._reasoning_tokens, self.shape
        content = self._text(reasoning, tokens)
        choice: dict[str, object] = {"index": 0, **shape.choice, "finish_reason": self.script.finish_reason}
        if self.ask.chat:
            message = {"role": "assistant", "content": content, **shape.message}
            if reasoning:
                message[self.habits.reasoning_field] = self._text(0, reasoning)
            choice["message"] = message
        else:
            choice["text"] = content
        choice |= shape.whole_choice
        document = self._document("chat.completion" if self.ask.chat else "text_completion", [choice])
        if self.habits.usage != "never":
            document["usage"] = self._usage(tokens)
        return document | shape.whole | self._timings(first_ns, last_ns)

    def _stream(self) -> Iterator[Write]:
        early, pending = self._opening()
        if early:
            yield Write(0, early)
        events = tokens = sent = 0
        first_ns = -1
        for number, event in enumerate(self._text_events()):
            if first_ns < 0:
                first_ns = event.due_ns
            if (
                self.habits.empty_delta_every
                and self.ask.style is None
                and number % self.habits.empty_delta_every == 0
            ):
                pending += sse(self._chunk({"content": ""}, None, {}))
            pending += event.data
            events += 1
            tokens += event.tokens
            last = sent + tokens == self.script.tokens
            if sent and events < self.habits.events_per_write and not last:
                continue
            then = Then.MORE
            if last:
                pending += self._tail(first_ns, event.due_ns)
                then = Then.END
            yield Write(event.due_ns, pending, events, tokens, then)
            sent += tokens
            pending = b""
            events = tokens = 0

    def _opening(self) -> tuple[bytes, bytes]:
        """Returns what leaves on admission, and what with the first token."""
        own_role = self.ask.chat and self.shape.role == "own"
        role = self._role_event() if own_role else b""
        return (role if self.habits.role == "early" else b""), (role if self.habits.role == "first" else b"")

    def _pieces(self) -> Iterator[Piece]:
        """The text of each event that carries some."""
        fixed = self.script.words
        words = _quoted(fixed) if fixed else JSON_WORDS[self.habits.vocabulary]
        first = 0 if fixed else self.script.first_word
        sent = 0
        for thought, end in ((True, self._reasoning_tokens), (False, self.script.tokens)):
            while sent < end:
                wanted = self.habits.tokens_per_event if sent else self.habits.first_event_tokens
                size = min(wanted, end - sent)
                *_, due_ns = islice(self.script.dues_ns, size)
                begin = first + sent
                data = b"".join(words[index % len(words)] for index in range(begin, begin + size))
                yield Piece(thought, due_ns, data, sent, size)
                sent += size

    def _text_events(self) -> Iterator[Write]:
        """One write per event that carries text."""
        role, finish = self.shape.role, self.shape.finish == "text"
        usage_each = self._usage_each
        usual: dict[str, tuple[bytes, bytes]] = {}
        for piece in self._pieces():
            name = self.habits.reasoning_field if piece.thought else "content"
            first, sent = not piece.before, piece.before + piece.tokens
            last = sent == self.script.tokens
            if usage_each or (first and role == "text") or (last and finish):
                parts = self._text_parts(
                    name,
                    role=role == "every" or (first and role == "text"),
                    finish=last and finish,
                    usage_tokens=sent if usage_each else None,
                )
            elif name in usual:
                parts = usual[name]
            else:
                parts = usual[name] = self._text_parts(name, role=role == "every")
            yield Write(piece.due_ns, parts[0] + piece.data + parts[1], 1, piece.tokens)

    def _text_parts(
        self, field: str, *, role: bool, finish: bool = False, usage_tokens: int | None = None
    ) -> tuple[bytes, bytes]:
        """Returns what stands before and after the text in an event."""
        delta = {"role": "assistant", field: "\0"} if role else {field: "\0"}
        extra = self.shape.text_choice
        reason = None
        if finish:
            extra, reason = {**extra, **self.shape.finish_choice}, self.script.finish_reason
        document = self._chunk(delta, reason, extra)
        if usage_tokens is not None:
            document["usage"] = self._usage(usage_tokens, stream=True)
        return cut_at_text(sse(document))

    def _tail(self, first_ns: int, last_ns: int) -> bytes:
        total, usage = self.script.tokens, self.habits.usage
        tail = b""
        if self.shape.finish == "own":
            document = self._chunk({}, self.script.finish_reason, self.shape.finish_choice)
            if usage == "finish" or self._usage_each or self._usage_in_finish:
                document["usage"] = self._usage(total, stream=True)
            if self._usage_in_finish:
                document |= self._timings(first_ns, last_ns)
            tail = sse(document)
        elsewhere = usage == "final" or (usage == "asked" and self.ask.include_usage)
        if elsewhere and not self._usage_in_finish:
            document = self._document(self._chunk_object, []) | self.shape.chunk
            document["usage"] = self._usage(total, stream=True)
            tail += sse(document | self.shape.usage_chunk | self._timings(first_ns, last_ns))
        return tail if self.habits.no_done else tail + b"data: [DONE]\n\n"

    def _text(self, start: int, stop: int) -> str:
        if words := self.script.words:
            return "".join(words[index % len(words)] for index in range(start, stop))
        first = self.script.first_word
        return text(self.habits.vocabulary, first + start, first + stop)

    def _timings(self, first_ns: int, last_ns: int) -> dict[str, object]:
        """llama.cpp's own times, in milliseconds."""
        if not self.shape.timings:
            return {}
        script = self.script
        prompt_ms, predicted_ms = first_ns / NS_PER_MS, (last_ns - first_ns) / NS_PER_MS
        processed = script.prompt_tokens - script.cached_tokens
        return {
            "timings": {
                "cache_n": script.cached_tokens,
                "prompt_n": processed,
                "prompt_ms": prompt_ms,
                "prompt_per_token_ms": prompt_ms / max(processed, 1),
                "prompt_per_second": 1e3 * processed / prompt_ms if prompt_ms else 0.0,
                "predicted_n": script.tokens,
                "predicted_ms": predicted_ms,
                "predicted_per_token_ms": predicted_ms / script.tokens,
                "predicted_per_second": 1e3 * script.tokens / predicted_ms if predicted_ms else 0.0,
            }
        }

    @property
    def _usage_in_finish(self) -> bool:
        return not self.ask.chat and self.completions_usage == "finish"

    @property
    def _usage_each(self) -> bool:
        return self.habits.usage == "each" or (self.habits.usage == "asked" and self.ask.continuous_usage)

    @property
    def _chunk_object(self) -> str:
        return "chat.completion.chunk" if self.ask.chat else "text_completion"

    @property
    def _reasoning_tokens(self) -> int:
        return min(self.habits.reasoning_tokens, self.script.tokens) if self.ask.chat else 0

    def _role_event(self) -> bytes:
        document = self._chunk(self.shape.role_delta, None, {})
        return sse(document | self.shape.role_chunk)

    def _chunk(
        self, delta: Mapping[str, object], finish: str | None, extra: dict[str, object]
    ) -> dict[str, object]:
        choice: dict[str, object] = {"index": 0}
        if self.ask.chat:
            choice["delta"] = delta
        else:
            choice["text"] = delta.get("content", "")
        choice |= self.shape.choice
        if finish or self.shape.finish_null:
            choice["finish_reason"] = finish
        return self._document(self._chunk_object, [choice | extra]) | self.shape.chunk

    def _document(self, object_name: str, choices: list[dict[str, object]]) -> dict[str, object]:
        return {
            "id": self.answer_id,
            "object": object_name,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def _usage(self, completion_tokens: int, *, stream: bool = False) -> dict[str, object]:
        if self.wrong_usage:
            completion_tokens = 2 * completion_tokens + 1
        prompt_tokens = self.script.prompt_tokens
        usage: dict[str, object] = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }
        if self.shape.cached_tokens:
            extra = self.shape.details if stream else self.shape.whole_details
            usage["prompt_tokens_details"] = {"cached_tokens": self.script.cached_tokens, **extra}
        if self.habits.counts_reasoning and self._reasoning_tokens:
            thought = min(completion_tokens, self._reasoning_tokens)
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        return usage | ({} if stream else self.shape.whole_usage)
