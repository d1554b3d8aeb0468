"""What a client asks for: the JSON bodies of the OpenAI routes are read, and texts cut into tokens."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from harness.mockserver.constraint import constrained_text, pieces, value_at
from harness.mockserver.dialect import Dialect
from harness.mockserver.event_style import EventStyle, MessagesStyle, ResponsesStyle
from harness.mockserver.images import ImageError, as_text
from harness.mockserver.sample import UnsupportedError
from harness.mockserver.script import first_word
from harness.mockserver.transcripts import Transcript
from harness.mockserver.values import Values, ValuesError, ValuesStyle

MOST_TOKENS = 10_000_000  # that a request may ask for: no model answers so many

Token = str | int  # a piece of text, or an id where the client sent ids
Messages = Sequence[Mapping[str, object]]


class BadAskError(ValueError):
    """The message is for the client. `status` None: the one the dialect has for bad requests."""

    def __init__(self, message: str, status: int | None = None, field: str = "") -> None:
        super().__init__(message)
        self.status, self.field = status, field


@dataclass(frozen=True, slots=True)
class Ask:
    chat: bool
    prompt: Sequence[Token]
    stream: bool = False
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    words: tuple[str, ...] = ()  # the answer's tokens, where the request constrains them
    question: str = ""  # the last message, by which an answer may be known
    first_word: int = 0  # of an answer that is not known
    salt: str = ""  # prompts of another salt share no prefix with this one
    images: tuple[str, ...] = ()  # sums of what they hold
    adapter: str = ""  # that answers; "": the base model
    uncached: bool = False  # the prompt is neither looked up in the cache nor kept there
    style: EventStyle | None = None  # of an API with named events; None: chunks of Chat Completions
    values: Values | Transcript | None = None  # vectors, scores or a transcript instead of text
    marked_tokens: int = 0  # of the prompt, that the client wants kept in a cache
    kept: Messages = ()  # the conversation so far, where the answer is to be kept with it


def tokenize(text: str, chars_per_token: int) -> list[str]:
    """So many characters a token from the start of the text, the last one shorter.

    A text that begins like another therefore shares its first tokens.
    """
    return [text[at : at + chars_per_token] for at in range(0, len(text), chars_per_token)]


def token_id(token: Token) -> int:
    return token if isinstance(token, int) else crc32(token.encode()) & 0x7FFF_FFFF


def chat_text(messages: Sequence[Any]) -> str:
    """The chat template: a line `<|ROLE|>` and the text of each message, then a line `<|assistant|>`."""
    return "".join(_turn(message) for message in messages) + "<|assistant|>\n"


def _turn(message: Any) -> str:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise BadAskError("every message must be an object with a role")
    content = message.get("content") or ""
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        raise BadAskError("content must be a string or a list of parts")
    return f"<|{message['role']}|>\n{content}\n"


def prompt_tokens(body: Mapping[str, object], chars_per_token: int) -> Sequence[Token]:
    """Returns the tokens of a chat (`messages`), completion (`prompt`) or tokenize (`content` too) body."""
    if (messages := body.get("messages")) is not None:
        if not isinstance(messages, list) or not messages:
            raise BadAskError("messages must be a list that is not empty")
        return tokenize(chat_text(messages), chars_per_token)
    prompt = body.get("prompt", body.get("content"))
    if isinstance(prompt, str):
        return tokenize(prompt, chars_per_token)
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        return prompt
    raise BadAskError("messages, or a prompt that is one string or a list of token ids, is required")


def load_object(body: bytes) -> dict[str, object]:
    try:
        value = json.loads(body)
        if b"\\u" in body or b"\xed" in body:  # may be half of a surrogate pair, which json takes for text
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadAskError(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadAskError("the body must be a JSON object")
    return value


def parse_ask(
    body: bytes,
    dialect: Dialect,
    *,
    chat: bool,
    chars_per_token: int,
    image_tokens: int = 0,
    style: EventStyle | None = None,
    kept: Mapping[str, Messages] | None = None,
) -> Ask:
    """`kept`: conversations by the id of their last answer. Raises BadAskError for what a server refuses."""
    fields = load_object(body)
    marked = isinstance(style, MessagesStyle) and style.marked(fields)
    if style is not None:
        fields = style.as_chat(fields)
    keeps = isinstance(style, ResponsesStyle) and style.keeps_turns and fields.get("store") is True
    if isinstance(style, ResponsesStyle) and (name := fields.get("previous_response_id")) is not None:
        conversation, before = _list(fields.get("messages")), _before(name, style, kept or {})
        fields["messages"] = [*filter(_is_system, conversation), *before, *_without_system(conversation)]
    _check_fields(fields, dialect)
    try:
        messages, images = as_text(fields.get("messages"), image_tokens * chars_per_token)
    except ImageError as error:
        raise BadAskError(str(error), field="messages") from error
    if images:
        fields["messages"] = messages
    forces_length = dialect.forces_length and (style is None or style.forces_length)
    if ("messages" in fields) != chat:
        message = "messages is required" if chat else "messages is not for this route"
        raise BadAskError(message, field="messages")
    if fields.get("n") not in (None, 1):
        raise BadAskError("n other than 1 is not simulated")
    stream_options = fields.get("stream_options") or {}
    if not isinstance(stream_options, dict):
        raise BadAskError("stream_options must be an object")
    max_tokens = _count(fields, "max_completion_tokens", least=1)
    try:
        constrained = constrained_text(fields, dialect.structure)
    except UnsupportedError as error:
        raise BadAskError(str(error), field="response_format") from error
    except Exception as error:  # a client may send any JSON for a schema, and any text for a grammar
        raise BadAskError(f"no constraint that is simulated: {error!r}", field="response_format") from error
    return Ask(
        chat=chat,
        prompt=prompt_tokens(fields, chars_per_token),
        stream=bool(fields.get("stream")),
        max_tokens=_count(fields, "max_tokens", least=1) if max_tokens is None else max_tokens,
        min_tokens=(_count(fields, "min_tokens", least=0) or 0) if forces_length else 0,
        ignore_eos=value_at(fields, dialect.length_field) is True and forces_length,
        include_usage=bool(stream_options.get("include_usage")),
        continuous_usage=bool(stream_options.get("continuous_usage_stats")),
        words=() if constrained is None else pieces(constrained),
        question=_last_text(fields),
        first_word=first_word(f"{_all_text(fields)}{images or ''}"),
        salt=str(fields.get(dialect.salt_field) or "") if dialect.salt_field else "",
        images=images,
        adapter=_adapter(fields),
        uncached=bool(dialect.uncached_field) and fields.get(dialect.uncached_field) is False,
        style=style,
        marked_tokens=len(_turn(_list(fields.get("messages"))[0])) // chars_per_token if marked else 0,
        kept=_without_system(_list(fields.get("messages"))) if keeps else (),
    )


def _adapter(fields: Mapping[str, object]) -> str:
    """Returns the adapter that the model's name says, or whose scale in the list `lora` is above 0."""
    name, scales = str(fields.get("model") or ""), fields.get("lora")
    for entry in scales if isinstance(scales, list) else ():
        if isinstance(entry, Mapping) and entry.get("scale") and isinstance(entry.get("id"), int):
            return adapter_name(entry["id"])
    return name if name.startswith(adapter_name(0)[:-1]) else ""


def adapter_name(number: int) -> str:
    return f"adapter-{number + 1}"


def _before(name: object, style: ResponsesStyle, kept: Mapping[str, Messages]) -> Messages:
    if not style.keeps_turns:
        raise BadAskError("previous_response_id is not supported", style.not_kept, "previous_response_id")
    if not isinstance(name, str) or name not in kept:
        raise BadAskError(f"Response with id '{name}' not found.", style.not_kept, "previous_response_id")
    return kept[name]


def _is_system(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "system"


def _without_system(messages: list[Any]) -> list[Any]:
    """Instructions are never kept."""
    return [message for message in messages if not _is_system(message)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def parse_values(body: bytes, style: ValuesStyle, chars_per_token: int) -> Ask:
    """Raises BadAskError. Each text has a token before it and one behind it, and none is kept in a cache."""
    fields = load_object(body)
    try:
        texts = style.texts(fields)
    except ValuesError as error:
        raise BadAskError(str(error)) from error
    tokens: list[Token] = ["[CLS]", "[SEP]"] * len(texts)
    tokens += [token for parts in texts for text in parts for token in tokenize(text, chars_per_token)]
    kept = {name: fields.get(name) for name in ("dimensions", "encoding_format")}
    return Ask(False, tokens, max_tokens=1, ignore_eos=True, uncached=True, values=Values(style, texts, kept))


def parse_recording(fields: Mapping[str, bytes]) -> Ask:
    """Reads a form. Raises BadAskError."""
    try:
        return Ask(False, (), max_tokens=1, ignore_eos=True, uncached=True, values=Transcript.of(fields))
    except ValuesError as error:
        raise BadAskError(str(error), field="file") from error


def _last_text(fields: Mapping[str, object]) -> str:
    messages = fields.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else fields.get("prompt")
    text = last.get("content") if isinstance(last, Mapping) else last
    return text if isinstance(text, str) else ""


def _all_text(fields: Mapping[str, object]) -> str:
    """Returns the same for equal chats and prompts, whichever API they come by."""
    messages = fields.get("messages")
    if not isinstance(messages, list):
        return str(fields.get("prompt"))
    return "".join(str(each.get("content")) for each in messages if isinstance(each, Mapping))


def _check_fields(fields: Mapping[str, object], dialect: Dialect) -> None:
    unknown = [] if dialect.known_fields is None else sorted(fields.keys() - dialect.known_fields)
    if unknown:
        raise BadAskError(f"Extra inputs are not permitted: {', '.join(unknown)}")
    for name, refused in dialect.refused_values.items():
        if fields.get(name) in refused:
            raise BadAskError(f"`{name}` must not be {fields[name]}")


def _count(fields: Mapping[str, object], name: str, *, least: int) -> int | None:
    value = fields.get(name)
    if value is not None and (type(value) is not int or value < least):
        raise BadAskError(f"{name} must be an integer of at least {least}")
    if value is not None and value > MOST_TOKENS:
        raise BadAskError(f"{name} must be at most {MOST_TOKENS:,}")
    return value
