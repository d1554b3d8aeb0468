"""OpenAI Chat Completions: `/v1/chat/completions`."""

import json
from collections.abc import Sequence

from harness.apis.api import ANSWER, TOOL, Api, Fields, Message
from harness.apis.payload import (
    CallPart,
    Document,
    Payload,
    arguments,
    count,
    generated_kind,
    items,
    place,
    string,
    timed_usage,
)
from harness.records.event_kind import UNKNOWN, EventKind


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    return {"messages": list(messages), "max_tokens": max_tokens}


def read(document: Document) -> Payload:
    """A chunk of a chat or of a completion, or a whole answer of either: engines mix the two."""
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[CallPart] = []
    finish_reason = ""
    for choice in items(document.get("choices")):
        if isinstance(reason := choice.get("finish_reason"), str):
            finish_reason = reason
        delta = choice.get("delta", choice.get("message"))
        if not isinstance(delta, dict):
            delta = choice
        thought = delta.get("reasoning")  # some engines send the same text under both names
        reasoning.append(string(thought) or string(delta.get("reasoning_content")))
        texts.append(string(delta.get("content")) or string(delta.get("text")))
        calls += _tool_calls(delta.get("tool_calls"))
    prompt, cached, output = _usage(document)
    parts = tuple(calls)
    kind = generated_kind("".join(texts), "".join(reasoning), parts)
    if kind is None:
        kind = EventKind.USAGE if max(prompt, cached, output) != UNKNOWN else EventKind.OTHER
    return Payload(kind, "".join(reasoning + texts), finish_reason, prompt, cached, output, calls=parts)


def _tool_calls(calls: object) -> list[CallPart]:
    parts = []
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            index = place(call.get("index"), position)
            name, said = string(function.get("name")), arguments(function.get("arguments"))
            parts.append(CallPart(index, string(call.get("id")), name, said))
    return parts


def _usage(document: Document) -> tuple[int, int, int]:
    """Prompt, cached and output tokens: from `usage`, where absent from llama.cpp's `timings`."""
    prompt, cached, output = timed_usage(document)
    usage = document.get("usage")
    if isinstance(usage, dict):
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and (reported := count(details.get("cached_tokens"))) != UNKNOWN:
            cached = reported
        if (reported := count(usage.get("prompt_tokens"))) != UNKNOWN:
            prompt = reported
        if (reported := count(usage.get("completion_tokens"))) != UNKNOWN:
            output = reported
    return prompt, cached, output


def _turn(said: str, tool_calls: str) -> tuple[bytes, bytes]:
    """Of several calls the first is carried on; a result that no call asked for is the user's message."""
    message: dict[str, object] = {"role": "assistant", "content": said}
    tool = b'{"role":"user",'
    if tool_calls:
        call = json.loads(tool_calls)[0]
        name = call["id"] or "call_0"
        function = {"name": call["name"], "arguments": call["arguments"]}
        message["tool_calls"] = [{"id": name, "type": "function", "function": function}]
        tool = b'{"role":"tool","tool_call_id":%b,' % json.dumps(name).encode()
    return json.dumps(message, separators=(",", ":")).encode(), tool


CHAT = Api(
    name="chat",
    title="Chat Completions",
    path="/v1/chat/completions",
    body=_body,
    read=read,
    text_keys=("content", "text", "reasoning", "reasoning_content"),
    end="[DONE]",
    turn=_turn,
    marks=(
        (b'{"role":"assistant","content":"\\u0000"}', ANSWER),
        (b'{"role":"tool","tool_call_id":"\\u0000",', TOOL),
    ),
    stream_options=True,
)
