"""Events of a stream that differ only in their text, and perhaps in numbers without meaning, read without
parsing each."""

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import takewhile
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from harness.apis import Api
from harness.apis.payload import Payload
from harness.records.layout import GENERATED, EventKind

_PLAIN = bytes(set(range(0x20, 0x100)) - set(b'"\\'))  # bytes that stand for themselves in a JSON string
_PROBE = "qzx"
_PROBE_NUMBER = b"1234567"
_NUMBER = rb"(?:0|[1-9][0-9]{0,14})"
_TEXT = rb'((?:[^"\\\x00-\x1f]++|\\.)*+)'  # of a JSON string; whether its escapes are valid shows later

ReadBlock = Callable[[bytes, Api], Payload | None]


class Run(NamedTuple):
    """Events of one form that follow one another."""

    texts: list[str]  # one after the other, in any division
    chars: NDArray[np.int32]  # of each event's text
    sizes: NDArray[np.int32]  # bytes of each event, with the empty line that ends it


class PlainForm(NamedTuple):
    """Events that are `prefix` + a JSON string + `suffix`."""

    prefix: bytes
    suffix: bytes  # with the empty line that ends the event
    kind: EventKind

    def take_run(self, body: bytes, start: int) -> Run:
        """The events of this form from `start` up to the first of another."""
        events = body[start:].split(self.suffix)[:-1]
        head = len(self.prefix)
        strings = [event[head:] for event in takewhile(methodcaller("startswith", self.prefix), events)]
        return _run(strings, np.int32(head + len(self.suffix)))


class CountedForm(NamedTuple):
    """Events that also differ in whole numbers, before the string or after it."""

    prefix: bytes  # up to the first thing that varies
    pattern: re.Pattern[bytes]  # of the whole event; its group is the inside of the JSON string
    kind: EventKind

    def take_run(self, body: bytes, start: int) -> Run:
        strings: list[bytes] = []
        overheads: list[int] = []
        match, at = self.pattern.match, start
        while found := match(body, at):
            text, end = found[1], found.end()
            strings.append(text)
            overheads.append(end - at - len(text))
            at = end
        return _run(strings, np.array(overheads, np.int32))


Form = PlainForm | CountedForm


def _run(strings: list[bytes], overheads: Any) -> Run:
    """`overheads`: bytes of each event without its text, or one number for all."""
    joined = b"".join(strings)
    lengths = np.fromiter(map(len, strings), np.int32, len(strings))
    if joined.isascii() and not joined.translate(None, _PLAIN):
        return Run([joined.decode("ascii")], lengths, lengths + overheads)
    texts = _read_strings(strings)
    sizes = (lengths + overheads)[: len(texts)]
    return Run(texts, np.fromiter(map(len, texts), np.int32, len(texts)), sizes)


def _read_strings(strings: list[bytes]) -> list[str]:
    """Decodes texts up to the first that is not the inside of one JSON string."""
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


def find_form(
    body: bytes, event: slice, following: int, payload: Payload, api: Api, read_block: ReadBlock
) -> Form | None:
    """The form of an event that is generated text and nothing else; proven by parsing a changed copy.

    None unless the event at `following` begins alike: the copy of an answer's only token helps nobody.
    """
    text = payload.text.encode("utf-8", "surrogatepass")
    if payload != Payload(payload.kind, payload.text, model=payload.model) or payload.kind not in GENERATED:
        return None
    block, blank = body[event], body[event.stop : following]
    if not blank.endswith(b"\n"):  # a \r may be half of a line end
        return None
    for match in _before_text(api.text_keys).finditer(block):
        prefix, rest = block[: match.end()], block[match.end() :]
        if not rest.startswith(text + b'"'):
            continue
        suffix = rest[len(text) :]
        before, after = _cut(prefix, api), _cut(suffix, api)
        if not body.startswith(before[0], following):
            continue
        changed = _PROBE_NUMBER.join(before) + _PROBE.encode() + _PROBE_NUMBER.join(after)
        if read_block(changed, api) != replace(payload, text=_PROBE):
            continue
        if len(before) == len(after) == 1:
            return PlainForm(prefix, suffix + blank, payload.kind)
        after[-1] += blank
        pattern = _TEXT.join(_NUMBER.join(map(re.escape, part)) for part in (before, after))
        return CountedForm(before[0], re.compile(pattern), payload.kind)
    return None


def _cut(part: bytes, api: Api) -> list[bytes]:
    """The parts between the numbers of the API's counters."""
    if not api.counter_keys:
        return [part]
    pieces, at = [], 0
    for found in _counter(api.counter_keys).finditer(part):
        pieces.append(part[at : found.start(1)])
        at = found.end(1)
    return [*pieces, part[at:]]


@cache
def _before_text(keys: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(rb'"(?:%b)"\s*:\s*"' % "|".join(keys).encode())


@cache
def _counter(keys: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(rb'"(?:%b)"\s*:\s*(%b)(?=\s*[,}])' % ("|".join(keys).encode(), _NUMBER))
