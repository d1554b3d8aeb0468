"""OpenAI Chat Completions: `/v1/chat/completions`."""

from collections.abc import Sequence

from harness.apis.api import ANSWER, TOOL, Api, Fields, Message, as_ascii
from harness.apis.payload import (
    CallPart,
    Document,
    Payload,
    Usage,
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
    usage_of,
    with_content,
)
from harness.records.event_kind import EventKind

_THOUGHTS = ("reasoning", "reasoning_content", "reasoning_text", "thinking")  # names of reasoning


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    return {"messages": list(messages), "max_tokens": max_tokens}


def _image(url: str) -> Fields:
    return {"type": "image_url", "image_url": {"url": url}}


def read(document: Document) -> Payload:
    """A chunk of a chat or of a completion, or a whole answer of either: engines mix the two."""
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[CallPart] = []
    finish_reason = ""
    choices = items(document.get("choices"))
    if failed := mapping(document.get("x_groq")).get("error"):
        return error_payload(error_message(failed))
    for choice in choices:
        if failed := choice.get("error"):  # of OpenRouter
            return error_payload(error_message(failed))
        if isinstance(reason := choice.get("finish_reason"), str):
            finish_reason = reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):  # a server may write the one it lacks as null
            delta = choice.get("message")
        if not isinstance(delta, dict):
            delta = choice
        reasoning.append(_thought(delta))
        text = string(delta.get("content")) or string(delta.get("refusal")) or string(delta.get("text"))
        (reasoning if "extra_content" in delta and _is_thought(delta) else texts).append(text)
        if called := delta.get("tool_calls"):
            calls += _tool_calls(called)
        elif called := delta.get("function_call"):
            calls += _tool_calls([{"function": called}])
    state = mapping(document.get("base_resp"))  # of MiniMax, in each event
    if state.get("status_code"):
        return error_payload(string(state.get("status_msg")))
    usage = _usage(document)
    # An empty delta may be a token without text, also where the engine adds its counts to each event.
    empty = EventKind.OTHER if choices else usage_kind(usage)
    return with_content(Payload(empty, "", finish_reason, *usage), texts, reasoning, calls)


def _thought(delta: Document) -> str:
    """Reasoning. Some servers send it under several names; Mistral and Databricks have it in the content."""
    for name in _THOUGHTS:
        if thought := string(delta.get(name)):
            return thought
    thought = _parts(delta.get("reasoning_details"), "text", "summary")
    return thought or _parts(delta.get("content"), "thinking", "summary")


def _is_thought(delta: Document) -> bool:
    """Whether Gemini marks the content as a thought."""
    return bool(mapping(mapping(delta["extra_content"]).get("google")).get("thought"))


def _parts(parts: object, *names: str) -> str:
    if not isinstance(parts, list):  # of most events
        return ""
    return "".join(string(part.get(name)) for part in items(parts) for name in names)


def _tool_calls(calls: object) -> list[CallPart]:
    parts = []
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            index = place(call.get("index"), position)
            name, given = string(function.get("name")), arguments(function.get("arguments"))
            parts.append(CallPart(index, string(call.get("id")), name, given))
    return parts


def _usage(document: Document) -> Usage:
    """Reads the usage from `usage`, where absent from llama.cpp's `timings`."""
    timed, usage = timed_usage(document), usage_of(document)
    if "input_tokens" in usage and "prompt_tokens" not in usage:  # as mlx-vlm names them
        return reported_usage(usage, "input_tokens", "output_tokens", timed)
    return reported_usage(usage, "prompt_tokens", "completion_tokens", timed) if usage else timed


def _turn(text: str, tool_calls: str) -> tuple[bytes, bytes]:
    """Builds the next turn. Of several calls the first is carried on; a result that no call asked for is
    the user's message.
    """
    message: dict[str, object] = {"role": "assistant", "content": text}
    tool = b'{"role":"user",'
    if tool_calls:
        name, call = first_call(tool_calls)
        function = {"name": call["name"], "arguments": call["arguments"]}
        message["tool_calls"] = [{"id": name, "type": "function", "function": function}]
        tool = b'{"role":"tool","tool_call_id":%b,' % as_ascii(name)
    return as_ascii(message), tool


CHAT = Api(
    name="chat",
    title="Chat Completions",
    path="/v1/chat/completions",
    body=_body,
    read=read,
    text_keys=("content", "text", "refusal", *_THOUGHTS),
    end="[DONE]",
    turn=_turn,
    marks=(
        ('{"role":"assistant","content":"\ufdd0"}'.encode(), ANSWER),
        ('{"role":"tool","tool_call_id":"\ufdd0",'.encode(), TOOL),
    ),
    stream_options=True,
    image=_image,
)
