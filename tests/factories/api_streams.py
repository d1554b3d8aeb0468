"""Streams of each API as wire bytes, in the shapes of real engines."""

import json
from collections.abc import Sequence


def named(document: dict[str, object]) -> bytes:
    return f"event: {document['type']}\ndata: ".encode() + json.dumps(document).encode() + b"\n\n"


def vllm_responses(texts: Sequence[str], *, status: str = "completed", reason: str | None = None) -> bytes:
    """The numbers stand behind the text; the last event is `response.completed` whatever the status."""
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "usage": None, "error": None}
    place = {"content_index": 0, "item_id": "msg_1", "output_index": 0}
    events: list[dict[str, object]] = [
        {"response": response, "type": "response.created"},
        {"response": response, "type": "response.in_progress"},
        {"item": {"type": "message", "content": []}, "output_index": 0, "type": "response.output_item.added"},
        {**place, "part": {"text": "", "type": "output_text"}, "type": "response.content_part.added"},
        *({**place, "delta": text, "logprobs": [], "type": "response.output_text.delta"} for text in texts),
        {**place, "text": "".join(texts), "type": "response.output_text.done"},
        {
            "response": {
                **response,
                "status": status,
                "incomplete_details": {"reason": reason} if reason else None,
                "usage": {
                    "input_tokens": 11,
                    "input_tokens_details": {"cached_tokens": 4},
                    "output_tokens": len(texts),
                    "output_tokens_details": {"reasoning_tokens": 0},
                },
            },
            "type": "response.completed",
        },
    ]
    return b"".join(_numbered(event, number) for number, event in enumerate(events))


def _numbered(event: dict[str, object], number: int) -> bytes:
    kind = event.pop("type")
    return named({**event, "sequence_number": number, "type": kind})


def sglang_responses(texts: Sequence[str]) -> bytes:
    """The numbers stand ahead of the text."""
    kind = "response.output_text.delta"
    deltas = [
        named({"type": kind, "sequence_number": 9 + number, "item_id": "m", "delta": text, "logprobs": []})
        for number, text in enumerate(texts)
    ]
    return b"".join(deltas)


def vllm_messages(texts: Sequence[str], *, stop_reason: str = "end_turn") -> bytes:
    """`input_tokens` is 11 at the start, all of the prompt, and 7 at the end, without the 4 cached ones."""
    start = {"role": "assistant", "content": [], "usage": {"input_tokens": 11, "output_tokens": 0}}
    end = {"input_tokens": 7, "output_tokens": len(texts), "cache_read_input_tokens": 4}
    return message_stream(texts, {"type": "message_start", "message": start}, end, stop_reason)


def llamacpp_messages(texts: Sequence[str], *, stop_reason: str = "end_turn") -> bytes:
    """The input's counts stand at the start alone, the 4 cached tokens apart from the 7 others."""
    usage = {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 0}
    start = {"role": "assistant", "content": [], "usage": usage}
    end = {"output_tokens": len(texts)}
    return message_stream(texts, {"type": "message_start", "message": start}, end, stop_reason)


def message_stream(
    texts: Sequence[str], start: dict[str, object], usage: dict[str, int], stop_reason: str
) -> bytes:
    block = {"type": "text", "text": ""}
    events: list[dict[str, object]] = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in texts
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": usage},
        {"type": "message_stop"},
    ]
    return b"".join(map(named, events))


def completions(texts: Sequence[str]) -> bytes:
    """As llama.cpp sends them: usage and timings in the chunk with the finish reason."""
    chunks: list[dict[str, object]] = [
        {"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": None}]}
        for text in texts
    ]
    chunks.append(
        {
            "object": "text_completion",
            "choices": [{"index": 0, "text": "", "finish_reason": "length"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": len(texts)},
            "timings": {"cache_n": 4, "prompt_n": 7, "predicted_n": len(texts)},
        }
    )
    return (
        b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    )
