"""A slow, plain reading of answers to hold the fast one against: bytes one by one, every event by JSON."""

import json
from dataclasses import dataclass, field


@dataclass
class Reference:
    text: str = ""
    events: int = 0  # comments included
    text_events: int = 0
    ends: list[int] = field(default_factory=list)  # offset after the last byte of each event
    done: bool = False
    finished: bool = False  # a finish reason came
    errors: int = 0
    malformed: bool = False
    named: set[int] = field(default_factory=set)  # tool calls whose name came


def read_stream(body: bytes, *, ended: bool) -> Reference:
    found = Reference()
    lines: list[bytes] = []
    line = bytearray()
    offset = 3 if body[:3] == b"\xef\xbb\xbf" else 0
    while offset < len(body):
        byte = body[offset : offset + 1]
        offset += 1
        if byte not in b"\r\n":
            line += byte
            continue
        if byte == b"\r" and body[offset : offset + 1] == b"\n":
            offset += 1
        if line:
            lines.append(bytes(line))
            line.clear()
        else:
            _dispatch(found, lines, offset)
            lines = []
    if ended and (line or lines):
        _dispatch(found, [*lines, bytes(line)], len(body))
    return found


def _dispatch(found: Reference, lines: list[bytes], end: int) -> None:
    data = []
    is_error = is_comment = False
    for line in filter(None, lines):
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        match name:
            case b"data":
                data.append(value)
            case b"event":
                is_error = value == b"error"
            case b"error" if value:
                is_error = True
                data.append(value)
            case b"":
                is_comment = True
            case _ if line.startswith(b"{"):
                data.append(line)
    joined = b"\n".join(data)
    if not joined.strip() and not is_comment:
        return
    found.events += 1
    found.ends.append(end)
    if not joined.strip():
        return
    if joined.strip() == b"[DONE]":
        found.done = True
        return
    try:
        document = json.loads(joined.decode())
    except (ValueError, RecursionError):
        document = None
    if is_error or (
        isinstance(document, dict)
        and (document.get("error") or "error" in (document.get("object"), document.get("type")))
    ):
        found.errors += 1
    elif not isinstance(document, dict):
        found.malformed = True
    else:
        text = _text(document, found)
        found.text += text
        found.text_events += bool(text)


def _text(document: dict, found: Reference) -> str:
    thoughts = texts = called = ""
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if not isinstance(choice, dict):
            continue
        found.finished |= isinstance(choice.get("finish_reason"), str) and choice["finish_reason"] != ""
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice["message"] if isinstance(choice.get("message"), dict) else choice
        thoughts += _plain(delta.get("reasoning")) or _plain(delta.get("reasoning_content"))
        texts += _plain(delta.get("content")) or _plain(delta.get("text"))
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else []):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            place = call.get("index") if isinstance(call.get("index"), int) else position
            name, value = _plain(function.get("name")), function.get("arguments")
            if name and place not in found.named:
                found.named.add(place)
                called += name
            called += json.dumps(value) if isinstance(value, dict) else _plain(value)
    return thoughts + texts + called


def _plain(value: object) -> str:
    if isinstance(value, list):
        return "".join(_plain(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""
