"""The body of an answer to its events: server-sent events, or one JSON document.

Runs after the stream ended. Most events of a stream differ in one JSON string only, so an event that
equals a parsed one outside that string is read without another JSON parse (`_Form`).
"""

import json
import re
from array import array
from dataclasses import dataclass, field
from itertools import takewhile
from operator import methodcaller
from typing import NamedTuple

import numpy as np

from harness.load.payload import CallPart, Payload, read_json
from harness.records.layout import GENERATED, UNKNOWN, EventKind

_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")  # atomic: \r\n is one line end, never two
_STRING = re.compile(rb'"(?:content|text|reasoning|reasoning_content)"\s*:\s*"')
_PLAIN = bytes(set(range(0x20, 0x100)) - set(b'"\\'))  # bytes that stand for themselves in a JSON string
_BOM = b"\xef\xbb\xbf"
_PROBE = "qzx"
_RESCANS = 8  # how often a body may be searched whole for events of one form: keeps parsing linear


@dataclass(slots=True)
class Parsed:
    """One entry per event, `texts` apart; `sizes` count bytes from the end of the event before."""

    kinds: bytearray = field(default_factory=bytearray)
    chars: "array[int]" = field(default_factory=lambda: array("i"))
    sizes: "array[int]" = field(default_factory=lambda: array("i"))
    texts: list[str] = field(default_factory=list)
    finish_reason: str = ""
    prompt_tokens: int = UNKNOWN
    cached_tokens: int = UNKNOWN
    output_tokens: int = UNKNOWN
    first_tokens: int = UNKNOWN  # the server's count of output tokens by the first event with text
    document: bool = False  # one JSON document, not a stream
    done: bool = False
    error: str = ""
    malformed: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)  # place → id, name, arguments
    _has_text: bool = False

    def add(self, payload: Payload, size: int) -> None:
        text = payload.text
        if payload.calls:
            text += "".join(map(self._add_call, payload.calls))
        nothing_new = payload.kind is EventKind.TOOL_CALL and not text  # a name that was said before
        self.kinds.append(EventKind.OTHER if nothing_new else payload.kind)
        self.chars.append(len(text))
        self.sizes.append(size)
        self.texts.append(text)
        self.finish_reason = payload.finish_reason or self.finish_reason
        self.error = self.error or payload.error
        self.malformed = self.malformed or payload.malformed
        self.done = self.done or payload.kind is EventKind.DONE
        if payload.prompt_tokens != UNKNOWN:
            self.prompt_tokens = payload.prompt_tokens
        if payload.cached_tokens != UNKNOWN:
            self.cached_tokens = payload.cached_tokens
        if payload.output_tokens != UNKNOWN:
            self.output_tokens = payload.output_tokens
        if text and not self._has_text:
            self._has_text = True
            self.first_tokens = self.output_tokens or UNKNOWN  # a count of 0 was not meant for this event

    def _add_call(self, part: CallPart) -> str:
        """What is new generated text in it: some engines repeat the name in every event."""
        call = self.calls.setdefault(part.place, ["", "", ""])
        name = "" if call[1] else part.name
        call[0], call[1] = call[0] or part.id, call[1] or part.name
        call[2] += part.arguments
        return name + part.arguments

    def reported_tokens(self) -> int:
        """Output tokens as the server counted them; text of no tokens was not counted."""
        return UNKNOWN if self._has_text and not self.output_tokens else self.output_tokens

    def tool_calls(self) -> str:
        """A JSON list of id, name and arguments (a text), in their order; "" where none."""
        names = ("id", "name", "arguments")
        calls = [dict(zip(names, self.calls[index], strict=True)) for index in sorted(self.calls)]
        return json.dumps(calls, ensure_ascii=True) if calls else ""

    def text(self) -> str:
        joined = "".join(self.texts)
        try:
            joined.encode()
        except UnicodeEncodeError:  # halves of a surrogate pair, perhaps escaped in two events
            return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return joined


def parse_document(body: bytes) -> Parsed:
    """A non-streamed JSON answer: one event."""
    parsed = Parsed(document=True)
    parsed.add(read_json(body), len(body))
    return parsed


def parse_events(body: bytes, *, ended: bool) -> Parsed:
    """Reads as the HTML standard says: a byte order mark is skipped, fields it does not name are ignored.

    `ended`: the body is whole, so a last event without its empty line counts; else it is dropped.
    """
    parsed = Parsed()
    form: _Form | None = None
    budget = _RESCANS * len(body)
    has_cr = b"\r" in body
    start = len(_BOM) if body.startswith(_BOM) else 0  # of the next block
    claimed = 0  # where the last event ended
    while start < len(body):
        if form is not None and budget > 0 and body.startswith(form.prefix, start):
            budget -= len(body) - start
            run_end = form.take_run(body, start, claimed, parsed)
            if run_end > start:
                start = claimed = run_end
                continue
        stop, end = _block_end(body, start, has_cr)
        if stop == len(body) and not ended:
            break
        block = body[start:stop]
        payload = read_block(block)
        if payload is not None:
            parsed.add(payload, end - claimed)
            claimed = end
            if budget > 0:
                form = _find_form(block, body[stop:end], payload) or form
        start = end
    return parsed


def _block_end(body: bytes, start: int, has_cr: bool) -> tuple[int, int]:
    """Where the text of a block stops and where the next block starts."""
    if has_cr:
        blank = _BLANK.search(body, start)
        return blank.span() if blank else (len(body), len(body))
    stop = body.find(b"\n\n", start)
    return (stop, stop + 2) if stop >= 0 else (len(body), len(body))


def read_block(block: bytes) -> Payload | None:
    """One event without its closing empty line; None where it says nothing at all."""
    if block.startswith(b"data: {") and b"\n" not in block and b"\r" not in block:
        return read_json(block[6:])
    data: list[bytes] = []
    event = b""
    comment = False
    for line in block.splitlines():  # bytes split at \n, \r and \r\n only
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
        elif name == b"error" and value:  # llama.cpp before 2025
            event = b"error"
            data.append(value)
        elif not name:
            comment = comment or bool(line)
        elif line.startswith(b"{"):  # an error that a proxy or server wrote without its field name
            data.append(line)
    text = b"\n".join(data)
    if not text.strip():
        return Payload(EventKind.COMMENT) if comment else None
    if text.strip() == b"[DONE]":
        return Payload(EventKind.DONE)
    return read_json(text, is_error=event == b"error")


class _Form(NamedTuple):
    """Events that are `prefix` + a JSON string + `suffix`, and nothing else varies."""

    prefix: bytes
    suffix: bytes  # with the empty line that ends the event
    kind: EventKind

    def take_run(self, body: bytes, start: int, claimed: int, parsed: Parsed) -> int:
        """Adds the events of this form that follow one another from `start`; returns where they end."""
        events = body[start:].split(self.suffix)[:-1]
        head = len(self.prefix)
        strings = [event[head:] for event in takewhile(methodcaller("startswith", self.prefix), events)]
        joined = b"".join(strings)
        lengths = np.fromiter(map(len, strings), np.int32, len(strings))
        if joined.isascii() and not joined.translate(None, _PLAIN):
            parsed.texts.append(joined.decode("ascii"))
            parsed.chars.frombytes(lengths.tobytes())
        else:
            texts = _read_strings(strings)
            lengths = lengths[: len(texts)]
            parsed.texts += texts
            parsed.chars.extend(map(len, texts))
        parsed.kinds += np.where(lengths > 0, np.uint8(self.kind), np.uint8(EventKind.OTHER)).tobytes()
        sizes = lengths + np.int32(head + len(self.suffix))
        run_end = start + int(sizes.sum())
        if len(sizes):
            sizes[0] += start - claimed
        parsed.sizes.frombytes(sizes.tobytes())
        return run_end


def _read_strings(strings: list[bytes]) -> list[str]:
    """The texts up to the first that is not the inside of one JSON string."""
    texts: list[str] = []
    for string in strings:
        try:
            text = string.decode()
            if string.translate(None, _PLAIN):
                text = json.loads(f'"{text}"')
        except ValueError:
            break
        texts.append(text)
    return texts


def _find_form(block: bytes, blank: bytes, payload: Payload) -> _Form | None:
    """The form of an event that is generated text and nothing else; proven by parsing a changed copy."""
    text = payload.text.encode("utf-8", "surrogatepass")
    if payload != Payload(payload.kind, payload.text) or payload.kind not in GENERATED:
        return None
    if not blank.endswith(b"\n"):  # a \r may be half of a line end
        return None
    for match in _STRING.finditer(block):
        prefix, rest = block[: match.end()], block[match.end() :]
        if rest.startswith(text + b'"'):
            suffix = rest[len(text) :]
            if read_block(prefix + _PROBE.encode() + suffix) == payload._replace(text=_PROBE):
                return _Form(prefix, suffix + blank, payload.kind)
    return None
