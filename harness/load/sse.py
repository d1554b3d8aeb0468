"""The body of an answer to its events: server-sent events, or one JSON document.

Runs after the stream ended. Most events of a stream differ in one JSON string only, in some APIs in a running
number too. An event that equals a parsed one in all else is read without another JSON parse (`form`).
"""

import json
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from harness.apis import CHAT, Api
from harness.apis.payload import CallPart, Payload, read_json, without_content
from harness.load.form import Form, Run, find_form
from harness.records.layout import UNKNOWN, EventKind

_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")  # atomic: \r\n is one line end, never two
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BOM = b"\xef\xbb\xbf"
_BEGINNINGS = (b"data:", b"event:", b"id:", b"retry:", b":")  # of an event
_RESCANS = 8  # how often a body may be searched whole for events of one form: keeps parsing linear


@dataclass(slots=True)
class Parsed:
    """One entry per event, `texts` apart; `sizes` count bytes from the end of the event before.

    An event of several kinds has an entry for each, with all bytes in the first.
    """

    kinds: bytearray = field(default_factory=bytearray)
    chars: "array[int]" = field(default_factory=lambda: array("i"))
    sizes: "array[int]" = field(default_factory=lambda: array("i"))
    texts: list[str] = field(default_factory=list)
    finish_reason: str = ""
    prompt_tokens: int = UNKNOWN
    cached_tokens: int = UNKNOWN
    output_tokens: int = UNKNOWN
    reasoning_tokens: int = UNKNOWN
    first_tokens: int = UNKNOWN  # the server's count of output tokens by the first event with text
    document: bool = False  # one JSON document, not a stream
    done: bool = False
    error: str = ""
    malformed: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)  # place → id, name, arguments
    values: tuple["array[float]", ...] = ()  # vectors, or one list of scores
    answer_id: str = ""
    models: dict[str, None] = field(default_factory=dict)  # that its events name, in their order
    _by_id: dict[str, list[str]] = field(default_factory=dict)  # the calls that have one
    _moved: dict[int, int] = field(default_factory=dict)  # places of calls, where several had the same
    _early: set[int] = field(default_factory=set)  # places of calls whose arguments parts may bring again
    _free_slot: int = 0  # behind all calls
    _has_text: bool = False

    def add(self, payload: Payload, size: int) -> None:
        if payload.repeats and self._has_text:
            payload = without_content(payload)
        kind, text = payload.kind, payload.text
        called = "".join(map(self._add_call, payload.calls)) if payload.calls else ""
        if payload.reasoning:
            size = self._add_reasoning(payload.reasoning, size)
        if text and called:
            self._add_entry(kind, text, size)
            kind, text, size = EventKind.TOOL_CALL, "", 0
        text += called
        nothing_new = kind is EventKind.TOOL_CALL and not text  # a name that was said before
        self._add_entry(EventKind.OTHER if nothing_new else kind, text, size)
        self.finish_reason = payload.finish_reason or self.finish_reason
        self.error = self.error or payload.error
        self.malformed = self.malformed or payload.malformed
        self.done = self.done or payload.ends
        self.values = payload.values or self.values
        self.answer_id = payload.answer_id or self.answer_id
        if payload.model:
            self.models[payload.model] = None
        if payload.prompt_tokens > 0:  # no prompt has 0 tokens: such a count is none
            self.prompt_tokens = payload.prompt_tokens
        if payload.cached_tokens != UNKNOWN:
            self.cached_tokens = payload.cached_tokens
        if payload.output_tokens > 0 or self.output_tokens == UNKNOWN:  # no count falls to 0
            self.output_tokens = payload.output_tokens
        if payload.reasoning_tokens != UNKNOWN:
            self.reasoning_tokens = payload.reasoning_tokens
        if text and not self._has_text:
            self._has_text = True
            self.first_tokens = self.output_tokens or UNKNOWN  # a count of 0 was not meant for this event

    def _add_entry(self, kind: EventKind, text: str, size: int) -> None:
        self.kinds.append(kind)
        # A transcript comes whole: it has no first token.
        self.chars.append(0 if kind is EventKind.VALUES else len(text))
        self.sizes.append(size)
        self.texts.append(text)

    def _add_reasoning(self, text: str, size: int) -> int:
        """Adds reasoning that came in one event with content. It counts in the event before, if that is
        reasoning. Returns the bytes of the event that no entry has yet.
        """
        before = next((at for at in range(len(self.chars) - 1, -1, -1) if self.chars[at]), None)
        if before is None or self.kinds[before] != EventKind.REASONING:
            self._add_entry(EventKind.REASONING, text, size)
            return 0
        self.chars[before] += len(text)
        self.texts.append(text)
        return size

    def add_run(self, kind: EventKind, run: Run, unclaimed: int) -> None:
        """Adds events of one form. `unclaimed`: bytes without meaning between the event before and the
        first.
        """
        self.texts += run.texts
        self.chars.frombytes(run.chars.tobytes())
        self.kinds += np.where(run.chars > 0, np.uint8(kind), np.uint8(EventKind.OTHER)).tobytes()
        at = len(self.sizes)
        self.sizes.frombytes(run.sizes.tobytes())
        self.sizes[at] += unclaimed

    def _add_call(self, part: CallPart) -> str:
        """The new generated text in it. Some engines repeat the name in every event, and some give each call
        the same place, but an id of its own. Older vLLM ends a call of `responses` under another id.
        """
        slot = self._moved.get(part.place, part.place)
        known = self.calls.get(slot)
        if part.whole:
            known = self._by_id.get(part.id, known)
            if known[2] if known else not part.name:
                return ""
        elif known and known[0] and part.id and part.name and part.id != known[0]:
            slot = self._moved[part.place] = self._free_slot
            known = None
        self._free_slot = max(self._free_slot, slot + 1)
        call = known or self.calls.setdefault(slot, ["", "", ""])
        name = "" if call[1] else part.name
        call[0], call[1] = call[0] or part.id, call[1] or part.name
        if call[0]:
            self._by_id.setdefault(call[0], call)
        if part.arguments:
            call[2] = part.arguments if slot in self._early else call[2] + part.arguments
            if part.early:
                self._early.add(slot)
            else:
                self._early.discard(slot)
        return name + part.arguments

    def reported_tokens(self) -> int:
        """Output tokens as the server counted them; a server may count tokens without text."""
        return UNKNOWN if self._has_text and not self.output_tokens else self.output_tokens

    def tool_calls(self) -> str:
        """A JSON list of id, name and arguments (a text), in their order; "" where none.

        A call without a name is one of the server's own tools.
        """
        names = ("id", "name", "arguments")
        calls = [dict(zip(names, call, strict=True)) for _, call in sorted(self.calls.items()) if call[1]]
        return json.dumps(calls, ensure_ascii=True) if calls else ""

    def text(self) -> str:
        return "".join(self.texts)

    def join_halves(self) -> None:
        """Makes one character of the halves of a surrogate pair, which may be escaped in two events.

        It counts in the event of its second half, with which it is whole.
        """
        joined = self.text()
        try:
            joined.encode()
        except UnicodeEncodeError:
            chars, kinds = np.frombuffer(self.chars, np.int32), np.frombuffer(self.kinds, np.uint8)
            first_halves = [pair.start() for pair in _PAIR.finditer(joined)]
            places = np.searchsorted(np.cumsum(chars), first_halves, side="right")
            places = places[places < len(chars)]  # a transcript comes whole, and counts none
            np.subtract.at(chars, places, 1)
            kinds[places[chars[places] == 0]] = EventKind.OTHER
            self.texts = [joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")]


def parse_answer(body: bytes, content_type: bytes, api: Api = CHAT, *, ended: bool) -> Parsed:
    """Reads the body of a 2xx answer by its content type, and by its look where that says nothing or errs.

    `content_type`: in lower case. `ended`: the body is whole; a part of a JSON document says nothing.
    """
    # Clients that ask for a stream do not look at its type, so servers get it wrong unnoticed.
    begun = body.removeprefix(_BOM).lstrip()
    streamed = b"event-stream" in content_type or begun.startswith(_BEGINNINGS)
    if not streamed and (b"json" in content_type or begun[:1] == b"{"):
        return parse_document(body, api) if ended else Parsed()
    parsed = parse_events(body, api, ended=ended)
    if body.strip() and not parsed.kinds and not streamed:
        parsed.malformed = "neither server-sent events nor JSON"
    return parsed


def parse_document(body: bytes, api: Api = CHAT) -> Parsed:
    """Reads a non-streamed JSON answer as one event."""
    parsed = Parsed(document=True)
    parsed.add(read_json(body.removeprefix(_BOM), api.read, bare_list=api.bare_list), len(body))
    parsed.join_halves()
    return parsed


def parse_events(body: bytes, api: Api = CHAT, *, ended: bool) -> Parsed:
    """Follows the HTML standard: a byte order mark is skipped, and unknown fields are ignored.

    `ended`: the body is whole, so a last event without its empty line counts; else it is dropped.
    """
    parsed = Parsed()
    form: Form | None = None
    budget = _RESCANS * len(body)
    has_cr = b"\r" in body
    start = len(_BOM) if body.startswith(_BOM) else 0  # of the next block
    claimed = 0  # where the last event ended
    while start < len(body):
        if form is not None and budget > 0 and body.startswith(form.prefix, start):
            budget -= len(body) - start
            run = form.take_run(body, start)
            if run.sizes.size:
                parsed.add_run(form.kind, run, start - claimed)
                start = claimed = start + int(run.sizes.sum())
                continue
        stop, end = _block_end(body, start, has_cr)
        if stop == len(body) and not ended:
            break
        block = body[start:stop]
        payload = read_block(block, api)
        if payload is not None:
            parsed.add(payload, end - claimed)
            claimed = end
            if budget > 0:
                form = find_form(body, slice(start, stop), end, payload, api, read_block) or form
        start = end
    parsed.join_halves()
    return parsed


def event_data(body: bytes, parsed: Parsed) -> Iterator[bytes]:
    """The data of each event of a body that was parsed: most often JSON."""
    if parsed.document:
        yield body
        return
    end = 0
    for size in parsed.sizes:
        start, end = end, end + size
        block = body[start:end] if start else body[:end].removeprefix(_BOM)
        yield _fields(block)[0]


def _block_end(body: bytes, start: int, has_cr: bool) -> tuple[int, int]:
    """The end of the text of a block, and the start of the next block."""
    if has_cr:
        blank = _BLANK.search(body, start)
        return blank.span() if blank else (len(body), len(body))
    stop = body.find(b"\n\n", start)
    return (stop, stop + 2) if stop >= 0 else (len(body), len(body))


def read_block(block: bytes, api: Api = CHAT) -> Payload | None:
    """Reads one event without its closing empty line; None if it says nothing."""
    if block.startswith(b"data: {") and b"\n" not in block and b"\r" not in block:
        return read_json(block[6:], api.read)
    text, event, comment = _fields(block)
    if not text.strip():
        return Payload(EventKind.COMMENT) if comment else None
    if text.strip() == b"[DONE]":
        return Payload(EventKind.DONE, ends=api.end == "[DONE]")  # else a gateway's, whatever came before it
    return read_json(text, api.read, is_error=event == b"error")


def _fields(block: bytes) -> tuple[bytes, bytes, bool]:
    """The data of one event, its name, and whether it has a comment."""
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
    return b"\n".join(data), event, comment
