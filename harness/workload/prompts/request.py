"""Requests as every backend gets them, before the dialect of an engine is applied."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from harness.records.request_table import After, Expected, Part
from harness.spec.recordings import Recording
from harness.spec.scenario.images import ImageClass

Message = tuple[str, str]  # role, content

# Token counts of texts, without special tokens and without a chat template.
TokenCounter = Callable[[Sequence[str]], Sequence[int]]


Shape = Literal["json_schema", "json_object", "regex", "choice", "grammar"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """Form of the answer that the engine is asked to enforce.

    `value` depends on the shape. json_schema: the schema, a dict. json_object: None. regex, grammar (GBNF,
    rule `root`): the text. choice: the texts to choose from.
    """

    shape: Shape
    value: Any = None


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools that the model may call, as OpenAI's `tools`, and `tool_choice`."""

    definitions: tuple[Mapping[str, object], ...]
    choice: Literal["auto", "required"] = "auto"


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Links of a call in a recorded session: what it waits for, and how its prompt begins.

    The message has only the rest of the prompt. Before it go the first `kept_bytes` of the prompt of the
    request `base` places earlier, as JSON has it.
    """

    after: After
    tool_ns: int
    think_ns: int
    base: int = 0
    kept: int = 0  # tokens
    kept_bytes: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles by position, which is faster than the field look-ups of dataclasses."""
        return CallPlace, _place_values(self)


@dataclass(frozen=True, slots=True)
class Picture:
    """One image: its file, and the address at which a server has it; "": it goes into the request."""

    kind: ImageClass
    seed: tuple[int, ...]
    file: str
    media_type: str
    sha256: str
    size_bytes: int
    address: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request. A later turn of a session has only its new messages; earlier ones and answers go before.

    A message with the role `tool` brings the result of the call in the answer before it.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    content_tokens: int = 0  # of these messages, without the chat template
    kind: str = ""  # class of the request, which also gets statistics of its own
    shared: tuple[Part, ...] = ()  # how the content begins, where others may begin alike
    session: int = -1  # its requests are consecutive, in the order of their turns; -1: of none
    turn: int = 0
    at_ns: int = -1  # when it came, in the trace it is from; -1: it has no time of its own
    constraint: Constraint | None = None
    tools: Tools | None = None
    expected: Expected | None = None
    call: CallPlace | None = None
    adapter: str = ""  # LoRA adapter that it names; "": the base model
    images: tuple[Picture, ...] | None = None  # of its last message; None: the scenario has none
    recording: Recording | None = None  # what is to be transcribed; the messages are then empty
    items: int = -1  # texts to embed, or documents to rank; -1: the answer is text

    def __reduce__(self) -> tuple[Any, ...]:
        return ChatRequest, _request_values(self)


_place_values = attrgetter(*CallPlace.__slots__)
_request_values = attrgetter(*ChatRequest.__slots__)
