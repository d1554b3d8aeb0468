"""Anthropic Messages: `/v1/messages`. A stream has no `[DONE]`: it ends with `message_stop`.

No engine here can be made to write an exact number of tokens through this API.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from harness.apis.api import ANSWER, JSON, TOOL, Api, Fields, Message, Tool, as_ascii, system_text
from harness.apis.payload import (
    CallPart,
    Document,
    Payload,
    arguments,
    count,
    first_call,
    items,
    mapping,
    place,
    string,
    usage_kind,
    with_content,
)
from harness.records.event_kind import UNKNOWN, EventKind

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
_SERVERS_CALLS = ("server_tool_use", "mcp_tool_use")  # of its own tools: no chat goes on with their results
_NOTHING = Payload(EventKind.OTHER)


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    """System messages are a field of their own."""
    system = system_text(messages)
    turns = [_message(message) for message in messages if message["role"] != "system"]
    return {**({"system": system} if system else {}), "messages": turns, "max_tokens": max_tokens}


def _image(url: str) -> Fields:
    media_type, coded, data = url.removeprefix("data:").partition(";base64,")
    if not coded:
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _keep_prefix(body: Fields) -> Fields:
    """`cache_control` at the end of the system's messages; engines that cache by themselves ignore it."""
    if "system" not in body:
        return body
    block = {"type": "text", "text": body["system"], "cache_control": {"type": "ephemeral"}}
    return body | {"system": [block]}


def _message(message: Message) -> Message:
    role, content = message["role"], message["content"]
    if role == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}
        return {"role": "user", "content": [result]}
    return {"role": role, "content": content}


def read(document: Document) -> Payload:
    match document.get("type"):
        case "content_block_delta":
            delta = mapping(document.get("delta"))
            kind = string(delta.get("type"))
            return _block(kind, string(delta.get(_DELTAS.get(kind, ""))), place(document.get("index")))
        case "content_block_start":
            return _started(mapping(document.get("content_block")), place(document.get("index")))
        case "message_start":  # its output tokens are those before any was generated
            return replace(_usage(mapping(document.get("message"))), output_tokens=UNKNOWN)
        case "message_delta":
            reason = string(mapping(document.get("delta")).get("stop_reason"))
            return replace(_usage(document), finish_reason=reason)
        case "message_stop":
            return Payload(EventKind.DONE, ends=True)
        case "ping":  # keeps the connection open, and is no token without text
            return Payload(EventKind.COMMENT)
        case "message":
            return _whole(document)
    return _NOTHING


def _block(kind: str, text: str, index: int) -> Payload:
    if not text:
        return _NOTHING
    if kind == "input_json_delta":
        return Payload(EventKind.TOOL_CALL, calls=(CallPart(index, "", "", text),))
    return Payload(EventKind.REASONING if kind == "thinking_delta" else EventKind.TEXT, text)


def _started(block: dict[str, Any], index: int) -> Payload:
    """Blocks begin empty, but for the name of a tool, and its input where a server has it whole."""
    if block.get("type") == "tool_use":
        given = arguments(block.get("input") or "")
        call = CallPart(index, string(block.get("id")), string(block.get("name")), given, early=bool(given))
        return Payload(EventKind.TOOL_CALL if call.name else EventKind.OTHER, calls=(call,))
    if block.get("type") in _SERVERS_CALLS:
        return Payload(EventKind.TOOL_CALL, string(block.get("name")))
    if block.get("type") == "thinking":
        return _block("thinking_delta", string(block.get("thinking")), index)
    return _block("text_delta", string(block.get("text")), index)


def _usage(holder: Document) -> Payload:
    """The prompt is what was computed, read from the cache and written to it, in one and the same block.

    vLLM's two blocks of a stream differ: in the first, `input_tokens` is the whole prompt. Gateways send a
    block of zeros where they have no count: no prompt has 0 tokens.
    """
    usage = mapping(holder.get("usage"))
    fresh, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    cached, written = (count(usage.get(f"cache_{part}_input_tokens")) for part in ("read", "creation"))
    prompt = UNKNOWN if fresh == UNKNOWN else fresh + max(cached, 0) + max(written, 0)
    if not prompt:
        prompt = cached = UNKNOWN
    thoughts = count(mapping(usage.get("output_tokens_details")).get("thinking_tokens"))
    counts = prompt, cached, output, thoughts
    return Payload(usage_kind(counts), "", "", *counts)


def _whole(message: Document) -> Payload:
    """An answer that is not streamed."""
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[CallPart] = []
    for position, block in enumerate(items(message.get("content"))):
        match block.get("type"):
            case "text":
                text.append(string(block.get("text")))
            case "thinking":
                reasoning.append(string(block.get("thinking")))
            case "tool_use":
                name, given = string(block.get("name")), arguments(block.get("input"))
                calls.append(CallPart(position, string(block.get("id")), name, given))
            case str(kind) if kind in _SERVERS_CALLS:
                text.append(string(block.get("name")) + arguments(block.get("input")))
    ended = replace(_usage(message), finish_reason=string(message.get("stop_reason")))
    return with_content(ended, text, reasoning, calls)


def _turn(text: str, tool_calls: str) -> tuple[bytes, bytes]:
    """Builds the next turn. Of several calls the first is carried on; a result that no call asked for is
    the user's message. Anthropic refuses blank texts: an answer of reasoning alone becomes an ellipsis.
    """
    text = text if text.strip() or tool_calls else "…"
    blocks = [as_ascii({"type": "text", "text": text})] if text.strip() else []
    tool = b'{"role":"user","content":[{"type":"text","text":'
    if tool_calls:
        name, call = first_call(tool_calls)
        known = as_ascii(name), as_ascii(call["name"]), call["arguments"].encode()
        blocks.append(b'{"type":"tool_use","id":%b,"name":%b,"input":%b}' % known)
        tool = b'{"role":"user","content":[{"type":"tool_result","tool_use_id":%b,"content":'
        tool %= as_ascii(name)
    return b'{"role":"assistant","content":[%b]}' % b",".join(blocks), tool


def _tools(definitions: Sequence[Tool]) -> list[Tool]:
    tools: list[Tool] = []
    for tool in definitions:
        function = dict(tool["function"])
        schema = function.pop("parameters", {"type": "object"})
        tools.append({**function, "input_schema": schema})
    return tools


def _tool_choice(choice: str) -> object:
    return {"type": {"required": "any"}.get(choice, choice)}


MESSAGES = Api(
    name="messages",
    title="Messages",
    path="/v1/messages",
    headers={**JSON, "anthropic-version": "2023-06-01"},  # Anthropic's own service requires one
    body=_body,
    read=read,
    text_keys=("text", "thinking"),
    end="message_stop",
    turn=_turn,
    marks=(
        ('{"role":"assistant","content":"\ufdd0"}'.encode(), ANSWER),
        ('{"role":"user","content":[{"type":"tool_result","tool_use_id":"\ufdd0","content":'.encode(), TOOL),
    ),
    tools=_tools,
    tool_choice=_tool_choice,
    keep_prefix=_keep_prefix,
    image=_image,
)
