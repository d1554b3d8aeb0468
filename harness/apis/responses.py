"""OpenAI Responses: `/v1/responses`. A stream has no `[DONE]`: its last event holds the whole response."""

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

from msgspec.structs import replace

from harness.apis.api import (
    ANSWER,
    BLANK,
    KEPT,
    TOOL,
    Api,
    Fields,
    Message,
    Tool,
    as_ascii,
    as_json,
    system_text,
)
from harness.apis.payload import (
    CallPart,
    Document,
    Payload,
    arguments,
    error_message,
    error_payload,
    first_call,
    items,
    mapping,
    place,
    reported_usage,
    string,
    timed_usage,
    usage_kind,
    with_content,
)
from harness.records.event_kind import UNKNOWN, EventKind

_TEXT = ("response.output_text.delta", "response.refusal.delta")
# The names of OpenAI, then those of Open Responses.
_REASONING = tuple(f"response.reasoning{part}.delta" for part in ("_text", "_summary_text", "", "_summary"))
# What is generated for tools that are no function, and of which a chat carries nothing on.
_WHOLE_CALLS = {"custom_tool_call": "input", "mcp_call": "arguments", "code_interpreter_call": "code"}
_CALLS = tuple(f"response.{call}_{part}.delta" for call, part in _WHOLE_CALLS.items())
_LAST = ("response.completed", "response.incomplete", "response.cancelled", "response.failed")
_ANSWERS = count()  # of this process: its chats are sent back by it alone
_NOTHING = Payload(EventKind.OTHER)  # whatever a later version of the API adds is neither text nor an error


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    """System messages are instructions: servers that keep a conversation do not keep those.

    Nothing is to be kept: a request carries all turns before it.
    """
    system = system_text(messages)
    items = [_item(message, at) for at, message in enumerate(messages) if message["role"] != "system"]
    instructions = {"instructions": system} if system else {}
    return {**instructions, "input": items, "max_output_tokens": max_tokens, "store": False}


def _image(url: str) -> Fields:
    return {"type": "input_image", "image_url": url}


def _item(message: Message, position: int) -> Message:
    role, content = message["role"], message["content"]
    if role == "tool":
        return {"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}
    if role == "assistant":
        return _assistant(content, 0 if content == BLANK else position)
    return {"role": role, "content": content}


def _assistant(text: object, number: object) -> dict[str, object]:
    """Builds the message with every key that the API's own types require: vLLM refuses it otherwise.

    OpenAI refuses an input in which two messages have the same `number`.
    """
    part = {"type": "output_text", "text": text, "annotations": []}
    fixed = {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant"}
    return {**fixed, "content": [part]}


def read(document: Document) -> Payload:
    kind = document.get("type")
    if kind in _TEXT:
        return _generated(EventKind.TEXT, document)
    if kind in _REASONING:
        return _generated(EventKind.REASONING, document)
    if kind in _CALLS:
        return _generated(EventKind.TOOL_CALL, document)
    if kind == "response.function_call_arguments.delta":
        part = CallPart(place(document.get("output_index")), "", "", string(document.get("delta")))
        return Payload(EventKind.TOOL_CALL, calls=(part,)) if part.arguments else _NOTHING
    if kind == "response.function_call_arguments.done":
        given = arguments(document.get("arguments"))
        whole = CallPart(place(document.get("output_index")), "", "", given, whole=True)
        return Payload(EventKind.TOOL_CALL, calls=(whole,))
    if kind in ("response.output_item.added", "response.output_item.done"):
        item = mapping(document.get("item"))
        if item.get("type") != "function_call":
            return _NOTHING
        call = _call(place(document.get("output_index")), item)._replace(whole=kind.endswith("done"))
        return Payload(EventKind.TOOL_CALL if call.name else EventKind.OTHER, calls=(call,))
    if kind == "keepalive":  # OpenAI's own, in long silences: no token without text
        return Payload(EventKind.COMMENT)
    if kind in _LAST:
        return replace(_whole(mapping(document.get("response")), document), ends=True, repeats=True)
    return _whole(document, document) if document.get("object") == "response" else _NOTHING


def _generated(kind: EventKind, document: Document) -> Payload:
    text = string(document.get("delta"))
    return Payload(kind, text) if text else _NOTHING


def _call(index: int, item: dict[str, Any]) -> CallPart:
    name = string(item.get("call_id")) or string(item.get("id"))
    return CallPart(index, name, string(item.get("name")), arguments(item.get("arguments")))


def _ended(response: Document, document: Document) -> Payload:
    """Usage, and why it ended: `completed`, else the reason for being incomplete."""
    status = string(response.get("status"))
    if status == "failed" or response.get("error"):
        return error_payload(error_message(response.get("error")))
    reason = string(mapping(response.get("incomplete_details")).get("reason"))
    timed = timed_usage(response)
    if max(timed) == UNKNOWN:
        timed = timed_usage(document)
    usage = reported_usage(mapping(response.get("usage")), "input_tokens", "output_tokens", timed)
    name = string(response.get("id"))
    return Payload(usage_kind(usage), "", reason or status, *usage, answer_id=name)


def _whole(response: Document, document: Document) -> Payload:
    """An answer that is not streamed, or that the last event of a stream repeats."""
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[CallPart] = []
    for position, item in enumerate(items(response.get("output"))):
        match item.get("type"):
            case "message":
                text.append(string(item.get("content")))
            case "reasoning":
                reasoning.append(string(item.get("content")) or string(item.get("summary")))
            case "function_call":
                calls.append(_call(position, item))
            case str(kind) if kind in _WHOLE_CALLS:
                text.append(string(item.get(_WHOLE_CALLS[kind])))
    ended = _ended(response, document)
    return ended if ended.error else with_content(ended, text, reasoning, calls)


def _turn(text: str, tool_calls: str) -> tuple[bytes, bytes]:
    """Builds the next turn. Of several calls the first is carried on; a result that no call asked for is
    the user's message.
    """
    items = [_assistant(text, f"answer_{next(_ANSWERS)}")] if text or not tool_calls else []
    tool = b'{"role":"user","content":'
    if tool_calls:
        name, call = first_call(tool_calls)
        fields = {"type": "function_call", "call_id": name, "name": call["name"]}
        items.append({**fields, "arguments": call["arguments"]})
        tool = b'{"type":"function_call_output","call_id":%b,"output":' % as_ascii(name)
    return b",".join(map(as_ascii, items)), tool


def _other_results(tool_calls: str) -> bytes:
    calls = json.loads(tool_calls)[1:] if tool_calls else []
    results = ({"type": "function_call_output", "call_id": call["id"], "output": ""} for call in calls)
    return b"".join(as_ascii(result) + b"," for result in results)


def _tools(definitions: Sequence[Tool]) -> list[Tool]:
    """The function's keys stand next to its type."""
    return [{"type": tool["type"], **tool["function"]} for tool in definitions]


RESPONSES = Api(
    name="responses",
    title="Responses",
    path="/v1/responses",
    body=_body,
    read=read,
    text_keys=("delta",),
    end="response.completed",
    echoes=3,  # in its first two events and in its last
    turn=_turn,
    marks=(
        (as_json(_assistant(BLANK, 0)), ANSWER),
        ('{"type":"function_call_output","call_id":"\ufdd0","output":'.encode(), TOOL),
        ('"previous_response_id":"\ufdd0"'.encode(), b'"previous_response_id":' + KEPT),
    ),
    counter_keys=("sequence_number",),
    image=_image,
    text_part="input_text",
    tools=_tools,
    keep_turns={"store": True},
    go_on={"previous_response_id": BLANK},
    other_results=_other_results,
)
