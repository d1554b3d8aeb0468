"""How engines differ in the two APIs whose streams are named events: data, which dialects/ fill in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ResponsesStyle:
    """`/v1/responses`."""

    opens: Literal["early", "first"] = "early"  # its first events leave on admission, or with the first token
    numbered: Literal["", "before", "behind"] = "behind"  # sequence_number, ahead of the text or after it
    tells_cut: bool = True  # the status of an answer that its limit cut is `incomplete`
    last_by_status: bool = False  # the last event is named by the status; else always response.completed
    timings: bool = False  # llama.cpp's own times in the last event
    takes_from_limit: int = 0  # tokens that an answer may be shorter than its limit
    forces_length: bool = True
    keeps_turns: bool = True  # previous_response_id is understood
    not_kept: int = 400  # status where no such answer is kept

    def as_chat(self, fields: Mapping[str, object]) -> dict[str, object]:
        """The request with the names that Chat Completions has for the same things."""
        given, own = fields.get("input"), ("input", "instructions", "max_output_tokens")
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if isinstance(messages, list) and (instructions := fields.get("instructions")):
            messages = [{"role": "system", "content": instructions}, *messages]
        chat = {key: value for key, value in fields.items() if key not in own}
        limit = fields.get("max_output_tokens")
        if isinstance(limit, int):
            limit -= self.takes_from_limit
        if limit is not None:
            chat["max_tokens"] = limit
        chat |= {} if messages is None else {"messages": _with_roles(messages)}
        return chat | _as_response_format(_below(fields, "text", "format"))


@dataclass(frozen=True, slots=True)
class MessagesStyle:
    """`/v1/messages`."""

    start_counts_all: bool = True  # input_tokens of message_start: the whole prompt; else without cached ones
    delta_counts_input: bool = True  # message_delta has the input's counts too
    # What cache_control has it keep, as the API says; engines count no such thing.
    counts_written: bool = False
    signature: bool = False  # an empty signature_delta ends a thinking block
    forces_length: bool = False

    def marked(self, fields: Mapping[str, object]) -> bool:
        """Returns whether the system's messages, which stand first in a chat, are to be kept in the cache."""
        system = (
            fields.get("system") if self.counts_written and isinstance(fields.get("messages"), list) else ()
        )
        blocks = system if isinstance(system, list) else ()
        return any(isinstance(block, dict) and "cache_control" in block for block in blocks)

    def as_chat(self, fields: Mapping[str, object]) -> dict[str, object]:
        """The request with the names that Chat Completions has for the same things."""
        system, messages = fields.get("system"), fields.get("messages")
        chat = {key: value for key, value in fields.items() if key != "system"}
        if system is not None and isinstance(messages, list):
            chat["messages"] = [{"role": "system", "content": system}, *messages]
        return chat | _as_response_format(_below(fields, "output_config", "format"))


EventStyle = ResponsesStyle | MessagesStyle


def _below(fields: Mapping[str, object], *keys: str) -> object:
    value: object = fields
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _as_response_format(asked: object) -> dict[str, object]:
    """Both APIs have the schema next to the type, where Chat Completions has it one level deeper."""
    if not isinstance(asked, Mapping):
        return {}
    rest = {key: value for key, value in asked.items() if key != "type"}
    return {"response_format": {"type": asked.get("type"), "json_schema": rest}}


def _with_roles(items: Any) -> Any:
    """Builds an item without a role of what a tool returned."""
    if not isinstance(items, Sequence):
        return items
    return [
        {"role": "tool", "content": item.get("output")}
        if isinstance(item, Mapping) and item.get("type") == "function_call_output"
        else item
        for item in items
    ]
