"""[dialect] of a backend: the fields in which an engine is asked, and what it is expected to answer.

In every table of fields a text that is nothing but `{placeholder}` becomes the value of that name, of any
type; inside a longer text it is inserted.
"""

from dataclasses import dataclass, field, fields
from typing import Literal

from harness.errors import SpecError
from harness.spec.strict import nearest
from harness.spec.template import placeholders

Fields = dict[str, object]

# Shape -> what a template for it may hold. `choices_regex` and `choices_grammar` say a choice to an engine
# that has no other word for it.
SHAPE_VALUES: dict[str, tuple[str, ...]] = {
    "json_schema": ("schema", "schema_text"),
    "json_object": (),
    "regex": ("regex",),
    "choice": ("choices", "choices_regex", "choices_grammar"),
    "grammar": ("grammar",),  # GBNF with the rule `root`: what llama.cpp, xgrammar and llguidance read
}


@dataclass(frozen=True, slots=True)
class Structured:
    """Fields that constrain an answer, by the shape asked for; {} where this engine cannot say it."""

    json_schema: Fields = field(default_factory=dict)
    json_object: Fields = field(default_factory=dict)
    regex: Fields = field(default_factory=dict)
    choice: Fields = field(default_factory=dict)
    grammar: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thinking:
    """Fields that switch a thinking model's reasoning; {} where a request cannot."""

    off: Fields = field(default_factory=dict)
    on: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Habits:
    """What this engine is expected to do; `bench probe` compares. A key left out: not known."""

    unknown_fields: Literal["ignored", "rejected"] | None = None
    first_chunk: Literal["role", "text"] | None = None  # an empty delta ahead of any text, or none
    tokens_per_event: Literal["one", "several"] | None = None
    usage: Literal["last", "finish", "each", "never"] | None = None  # a chunk of its own, or the finish chunk
    cached_tokens: bool | None = None  # reported in the usage block
    done: bool | None = None  # `data: [DONE]` ends a stream; not known: expected
    finish_reason: bool | None = None  # every whole answer has one
    keeps_connection: bool | None = None  # open after a stream; not known: expected
    comments: bool | None = None  # SSE comments keep the connection alive
    reasoning_field: Literal["reasoning", "reasoning_content"] | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a chat request is said to this engine."""

    chat_path: str = "/v1/chat/completions"
    exact_output: Fields = field(default_factory=dict)  # force max_tokens; {}: cannot
    extra: Fields = field(default_factory=dict)  # sent with every request
    refuses_neutral: tuple[Literal["temperature", "top_p"], ...] = ()  # left out at 0 and at 1
    stream_usage: bool = True  # stream_options.include_usage is understood
    seed: Fields = field(default_factory=lambda: {"seed": "{seed}"})  # {}: cannot, or costs speed
    cache_salt: Fields = field(default_factory=dict)  # keep prefixes apart by `{salt}`; {}: cannot
    tools: Fields = field(default_factory=lambda: {"tools": "{tools}", "tool_choice": "{tool_choice}"})
    thinking: Thinking = Thinking()
    structured: Structured = Structured()
    habits: Habits = Habits()


def check_dialect(dialect: Dialect, where: str) -> None:
    """Raises SpecError for a placeholder that has no value in its table."""
    places: dict[str, tuple[Fields, tuple[str, ...]]] = {
        "exact_output": (dialect.exact_output, ("max_tokens",)),
        "extra": (dialect.extra, ()),
        "seed": (dialect.seed, ("seed",)),
        "cache_salt": (dialect.cache_salt, ("salt",)),
        "tools": (dialect.tools, ("tools", "tool_choice")),
        "thinking.off": (dialect.thinking.off, ()),
        "thinking.on": (dialect.thinking.on, ()),
    }
    for shape in fields(Structured):
        places[f"structured.{shape.name}"] = getattr(dialect.structured, shape.name), SHAPE_VALUES[shape.name]
    for place, (template, known) in places.items():
        for name in placeholders(template):
            if name not in known:
                raise SpecError(
                    f"unknown placeholder '{{{name}}}'",
                    where=f"{where}:dialect.{place}",
                    hint=nearest(name, known) or "nothing is filled in here",
                )
