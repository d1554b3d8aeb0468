"""Answers of the two APIs whose streams are named events and have no `[DONE]`: Responses and Messages."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from harness.mockserver.answer import Answer, cut_at_text, dump
from harness.mockserver.ask import Ask, Messages
from harness.mockserver.event_style import MessagesStyle, ResponsesStyle
from harness.mockserver.script import Write

_NUMBER = "\1"  # stands where an event's number goes
_JSON_NUMBER = b'"\\u0001"'


def answer_to(ask: Ask, **fields: Any) -> Answer:
    """The answer in the API that the request came by."""
    if isinstance(ask.style, ResponsesStyle):
        return ResponsesAnswer(ask=ask, **fields, style=ask.style)
    if isinstance(ask.style, MessagesStyle):
        return MessagesAnswer(ask=ask, **fields, style=ask.style)
    return Answer(ask=ask, **fields)


def _named(document: Mapping[str, object]) -> bytes:
    return f"event: {document['type']}\ndata: ".encode() + dump(document) + b"\n\n"


def _part_type(*, thought: bool) -> str:
    return "reasoning_text" if thought else "output_text"


def _block_delta(index: int, **delta: object) -> bytes:
    return _named({"type": "content_block_delta", "index": index, "delta": delta})


@dataclass(frozen=True, slots=True)
class EventAnswer(Answer, ABC):
    """Answer in events. Its text comes in parts, first what was thought: each is opened, written piece by
    piece, and closed.
    """

    def _text_events(self) -> Iterator[Write]:
        index, open_part = -1, None
        around: tuple[bytes, bytes] = b"", b""
        for piece in self._pieces():
            ahead = b""
            if open_part is not piece.thought:
                ahead = self._closed(index, thought=True) if open_part else b""
                index, open_part = index + 1, piece.thought
                ahead += self._opened(index, thought=piece.thought)
                around = cut_at_text(self._delta(index, thought=piece.thought))
            yield Write(piece.due_ns, ahead + around[0] + piece.data + around[1], 1, piece.tokens)

    @abstractmethod
    def _opened(self, index: int, *, thought: bool) -> bytes: ...

    @abstractmethod
    def _delta(self, index: int, *, thought: bool) -> bytes:
        """One event of the part, with a NUL in the place of its text."""

    @abstractmethod
    def _closed(self, index: int, *, thought: bool) -> bytes: ...

    @property
    def _last_part(self) -> int:
        return 1 if self._reasoning_tokens else 0


@dataclass(frozen=True, slots=True)
class ResponsesAnswer(EventAnswer):
    style: ResponsesStyle = field(default_factory=ResponsesStyle)

    @property
    def name(self) -> str:
        """Name by which a later request may go on from here."""
        return f"resp_{self.answer_id}"

    def conversation(self) -> Messages:
        """Conversation up to this answer, without what was thought."""
        text = self._text(self._reasoning_tokens, self.script.tokens)
        return [*self.ask.kept, {"role": "assistant", "content": text}]

    def _stream(self) -> Iterator[Write]:
        """Events are numbered in the order in which they leave."""
        numbers = count()
        for write in super(ResponsesAnswer, self)._stream():
            first, *rest = write.data.split(_JSON_NUMBER)
            numbered = [first, *(b"%d%b" % (next(numbers), part) for part in rest)]
            yield write._replace(data=b"".join(numbered))

    def _event_bytes(self, kind: str, **fields: object) -> bytes:
        number = {"sequence_number": _NUMBER}
        match self.style.numbered:
            case "before":
                return _named({"type": kind, **number, **fields})
            case "behind":
                return _named({**fields, **number, "type": kind})
        return _named({"type": kind, **fields})

    def _opening(self) -> tuple[bytes, bytes]:
        response = self._response("in_progress", [], None)
        data = self._event_bytes("response.created", response=response)
        data += self._event_bytes("response.in_progress", response=response)
        return (data, b"") if self.style.opens == "early" else (b"", data)

    def _place(self, index: int) -> dict[str, object]:
        return {"content_index": 0, "item_id": self._item_id(index), "output_index": index}

    def _opened(self, index: int, *, thought: bool) -> bytes:
        item = {**self._item(index, thought=thought), "content": [], "status": "in_progress"}
        data = self._event_bytes("response.output_item.added", item=item, output_index=index)
        part = {"type": _part_type(thought=thought), "text": ""}
        return data + self._event_bytes("response.content_part.added", **self._place(index), part=part)

    def _delta(self, index: int, *, thought: bool) -> bytes:
        logprobs: dict[str, object] = {} if thought else {"logprobs": []}
        name = f"response.{_part_type(thought=thought)}.delta"
        return self._event_bytes(name, **self._place(index), delta="\0", **logprobs)

    def _closed(self, index: int, *, thought: bool) -> bytes:
        item = self._item(index, thought=thought)
        (part,), position = item["content"], self._place(index)
        data = self._event_bytes(f"response.{part['type']}.done", **position, text=part["text"])
        data += self._event_bytes("response.content_part.done", **position, part=part)
        return data + self._event_bytes("response.output_item.done", item=item, output_index=index)

    def _tail(self, first_ns: int, last_ns: int) -> bytes:
        response = self._whole_document(first_ns, last_ns)
        timings = self._timings(first_ns, last_ns) if self.style.timings else {}
        name = f"response.{response['status']}" if self.style.last_by_status else "response.completed"
        return self._closed(self._last_part, thought=False) + self._event_bytes(
            name, response=response, **timings
        )

    def _whole_document(self, first_ns: int, last_ns: int) -> Mapping[str, object]:
        thought = [self._item(0, thought=True)] if self._reasoning_tokens else []
        output = [*thought, self._item(len(thought), thought=False)]
        cut = self.script.finish_reason == "length" and self.style.tells_cut
        usage = None if self.habits.usage == "never" else self._token_counts()
        return self._response("incomplete" if cut else "completed", output, usage)

    def _response(
        self, status: str, output: list[dict[str, Any]], usage: dict[str, object] | None
    ) -> dict[str, object]:
        return {
            "id": self.name,
            "object": "response",
            "created_at": self.created,
            "model": self.model,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": output,
            "usage": usage,
        }

    def _token_counts(self) -> dict[str, object]:
        counted = self._usage(self.script.tokens)
        return {
            "input_tokens": counted["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": self.script.cached_tokens},
            "output_tokens": counted["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": self._reasoning_tokens},
            "total_tokens": counted["total_tokens"],
        }

    def _item_id(self, index: int) -> str:
        return f"item_{self.answer_id}_{index}"

    def _item(self, index: int, *, thought: bool) -> dict[str, Any]:
        begin, end = (0, self._reasoning_tokens) if thought else (self._reasoning_tokens, self.script.tokens)
        part = {"type": _part_type(thought=thought), "text": self._text(begin, end)}
        item = {"id": self._item_id(index), "status": "completed", "content": [part]}
        return {**item, "type": "reasoning"} if thought else {**item, "type": "message", "role": "assistant"}


@dataclass(frozen=True, slots=True)
class MessagesAnswer(EventAnswer):
    style: MessagesStyle = field(default_factory=MessagesStyle)

    def _opening(self) -> tuple[bytes, bytes]:
        usage = self._counts(all_input=self.style.start_counts_all, output=0)
        message = self._message([], None, usage)
        return b"", _named({"type": "message_start", "message": message})

    def _opened(self, index: int, *, thought: bool) -> bytes:
        key = "thinking" if thought else "text"
        block = {"type": key, key: ""}
        return _named({"type": "content_block_start", "index": index, "content_block": block})

    def _delta(self, index: int, *, thought: bool) -> bytes:
        key = "thinking" if thought else "text"
        return _block_delta(index, type=f"{key}_delta", **{key: "\0"})

    def _closed(self, index: int, *, thought: bool) -> bytes:
        signed = thought and self.style.signature
        data = _block_delta(index, type="signature_delta", signature="") if signed else b""
        return data + _named({"type": "content_block_stop", "index": index})

    def _tail(self, first_ns: int, last_ns: int) -> bytes:
        usage: dict[str, object] = {"output_tokens": self._output_tokens}
        if self.style.delta_counts_input:
            usage = self._counts(all_input=False, output=self._output_tokens)
        delta = {"stop_reason": self._stop_reason, "stop_sequence": None}
        counted = {} if self.habits.usage == "never" else {"usage": usage}
        data = self._closed(self._last_part, thought=False)
        data += _named({"type": "message_delta", "delta": delta, **counted})
        return data + _named({"type": "message_stop"})

    def _whole_document(self, first_ns: int, last_ns: int) -> Mapping[str, object]:
        reasoning = self._reasoning_tokens
        thought = [{"type": "thinking", "thinking": self._text(0, reasoning)}] if reasoning else []
        text = {"type": "text", "text": self._text(reasoning, self.script.tokens)}
        usage = self._counts(all_input=False, output=self._output_tokens)
        return self._message([*thought, text], self._stop_reason, usage)

    def _message(
        self, content: list[dict[str, str]], stop_reason: str | None, usage: dict[str, object]
    ) -> dict[str, object]:
        return {
            "id": f"msg_{self.answer_id}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def _counts(self, *, all_input: bool, output: object) -> dict[str, object]:
        """`all_input`: the whole prompt as one number, which is how vLLM begins a stream."""
        prompt, cached = self.script.prompt_tokens, self.script.cached_tokens
        if all_input:
            return {"input_tokens": prompt, "output_tokens": output}
        counts = {"output_tokens": output, "cache_read_input_tokens": cached}
        if not self.style.counts_written:
            return {"input_tokens": prompt - cached, **counts}
        written = max(self.ask.marked_tokens - cached, 0)
        return {"input_tokens": prompt - cached - written, **counts, "cache_creation_input_tokens": written}

    @property
    def _output_tokens(self) -> object:
        return self._usage(self.script.tokens)["completion_tokens"]

    @property
    def _stop_reason(self) -> str:
        return {"length": "max_tokens"}.get(self.script.finish_reason, "end_turn")
