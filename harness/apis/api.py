"""The declaration of one API: how a request is built, what its events mean, and how its streams end."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.apis.payload import Reader

Fields = dict[str, object]
Message = Mapping[str, object]  # role, content; those of tools have more
Tool = Mapping[str, Any]  # as Chat Completions declares a function
JSON: Mapping[str, str] = {"content-type": "application/json"}
Gives = Literal["text", "vectors", "scores", "transcripts"]

# Marks in the body of a later turn, in the place of what is known when it is due. JSON never holds them.
ANSWER = b"\x00"  # the answer to an earlier turn
TOOL = b"\x01"  # the start of a message that answers the tool call before it, up to its content
KEPT = b"\x02"  # the id of the answer to the turn before
BLANK = "\ufdd0"  # stands in a body for the text or id that a mark replaces; Unicode has no such character


def as_json(fields: Fields) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def system_text(messages: Sequence[Message]) -> str:
    """System messages together, for an API that has a field for them; "" without any."""
    return "\n\n".join(str(message["content"]) for message in messages if message["role"] == "system")


def as_ascii(value: object) -> bytes:
    """JSON of what a server sent: UTF-8 has no half of a surrogate pair, which may be in it."""
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Api:
    name: str
    title: str
    path: str  # where most servers have it; a definition may name another
    body: Callable[[Sequence[Message], int], Fields]  # messages, and at most so many output tokens
    read: Reader  # one event, or the whole answer of a request that is not streamed
    encode: Callable[[Fields], bytes] = as_json  # a body with all its fields to bytes
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)  # of a request, names in lower case
    # A JSON string with generated text stands behind one of these keys. An event that differs from a parsed
    # one in that string alone is read without another JSON parse.
    text_keys: tuple[str, ...] = ()
    end: str = ""  # what ends a whole stream, for messages about streams that lack it
    # Content and tool calls to what ANSWER and TOOL become.
    turn: Callable[[str, str], tuple[bytes, bytes]] = lambda text, tool_calls: (b"", b"")
    # A message as `body` writes it around BLANK, and the mark that takes its place.
    marks: tuple[tuple[bytes, bytes], ...] = ()
    # All but text comes whole: such an API has no stream, no first token and no output tokens.
    gives: Gives = "text"
    echoes: int = 0  # how often an answer repeats what was sent: instructions, or the documents to rank
    bare_list: str = ""  # key of the answer that some engines send alone: its list, with nothing around it
    counter_keys: tuple[str, ...] = ()  # whole numbers that differ from event to event and mean nothing here
    stream_options: bool = False  # usage in a stream must be requested
    templated: bool = True  # the server puts messages into a chat template; False: the prompt is raw text
    tools: Callable[[Sequence[Tool]], list[Tool]] = list  # definitions in the API's own form
    tool_choice: Callable[[str], object] = str
    image: Callable[[str], Fields] | None = None  # address to a part of a message; None: the API has none
    text_part: str = "text"  # type of the parts with text, next to those with images
    keep_prefix: Callable[[Fields], Fields] | None = None  # asks for what chats share to be kept in a cache
    keep_turns: Fields = field(default_factory=dict)  # has the server keep its answer; {}: it cannot
    go_on: Fields = field(default_factory=dict)  # of a later turn, in the place of the turns before it
    # Results of the tool calls that a chat does not go on with: a server that keeps them wants one for each.
    other_results: Callable[[str], bytes] = lambda tool_calls: b""
