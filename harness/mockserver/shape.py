"""Keys that an engine's answers have besides those of the OpenAI API."""

from dataclasses import dataclass, field
from typing import Literal

Extra = dict[str, object]


@dataclass(frozen=True, slots=True)
class Shape:
    """Keys with their values, put next to the usual ones."""

    # A chunk of its own, with the first text, or with every text.
    role: Literal["own", "text", "every"] = "own"
    # Of a chunk with the role and no text.
    role_delta: Extra = field(default_factory=lambda: {"role": "assistant", "content": ""})
    finish: Literal["own", "text"] = "own"  # a chunk of its own, or with the last text
    finish_null: bool = True  # choices that do not end the answer say so with finish_reason null
    chunk: Extra = field(default_factory=lambda: {"system_fingerprint": "simulated"})  # of every chunk
    role_chunk: Extra = field(default_factory=dict)  # of the role chunk, besides `chunk`
    usage_chunk: Extra = field(default_factory=dict)  # of the last one, besides `chunk`
    choice: Extra = field(default_factory=lambda: {"logprobs": None})
    text_choice: Extra = field(default_factory=dict)  # of choices with text, besides `choice`
    finish_choice: Extra = field(default_factory=dict)
    message: Extra = field(default_factory=dict)  # of an answer that is not streamed
    whole_choice: Extra = field(default_factory=dict)
    whole: Extra = field(default_factory=lambda: {"system_fingerprint": "simulated"})
    cached_tokens: bool = True  # prompt_tokens_details.cached_tokens in usage
    details: Extra = field(default_factory=dict)  # next to cached_tokens, in a stream
    whole_details: Extra = field(default_factory=dict)  # and in an answer that is not streamed
    whole_usage: Extra = field(default_factory=dict)
    timings: bool = False  # llama.cpp's block of the server's own times
