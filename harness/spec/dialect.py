"""[dialect] of a backend: the fields of requests to an engine, and what it is expected to answer.

In every table of fields a text that is nothing but `{placeholder}` becomes the value of that name, of any
type; inside a longer text it is inserted.
"""

import dataclasses
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from harness.apis import API_NAMES, APIS, ApiName
from harness.errors import SpecError
from harness.spec.strict import check_known, nearest
from harness.spec.template import placeholders

Fields = dict[str, object]

# Shape -> what a template for it may hold. `choices_regex` and `choices_grammar` express a choice for an
# engine that has no field for choices.
SHAPE_VALUES: dict[str, tuple[str, ...]] = {
    "json_schema": ("schema", "schema_text"),
    "json_object": (),
    "regex": ("regex",),
    "choice": ("choices", "choices_regex", "choices_grammar"),
    "grammar": ("grammar",),  # GBNF with the rule `root`: what llama.cpp, xgrammar and llguidance read
}


@dataclass(frozen=True, slots=True)
class Structured:
    """Fields that constrain an answer, by the shape asked for; {} if this engine has none."""

    json_schema: Fields = field(default_factory=dict)
    json_object: Fields = field(default_factory=dict)
    regex: Fields = field(default_factory=dict)
    choice: Fields = field(default_factory=dict)
    grammar: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thinking:
    """Fields that switch the reasoning of a thinking model; {} if a request cannot."""

    off: Fields = field(default_factory=dict)
    on: Fields = field(default_factory=dict)
    budget: Fields = field(default_factory=dict)  # at most `{budget}` tokens of it; {}: cannot


@dataclass(frozen=True, slots=True)
class Lora:
    """Arguments that start this engine with LoRA adapters, and fields by which a request names one.

    {adapter} is its name, {adapter_path} its file or folder. A variant that takes part without adapters has
    neither arguments nor fields.
    """

    args: tuple[str, ...] = ()  # where there is an adapter
    each: tuple[str, ...] = ()  # after them, for each adapter
    # `{adapter}`: its name, or that of the model; `{adapter_scales}`: [{"id": 0, "scale": 1.0}, …] of all.
    request: Fields = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Habits:
    """Behaviour that this engine is expected to show; `bench probe` checks it. A key left out: not known."""

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
class Served:
    """The place of an API, and what the engine is started with to serve it."""

    path: str = ""  # "": the API's usual one
    engine_args: tuple[str, ...] = ()
    remove_args: tuple[str, ...] = ()  # without which it is started, each flag alone
    engine_env: dict[str, str] = field(default_factory=dict)
    keeps_turns: bool = False  # started so, it keeps answers, and a later turn may name the one before it
    limit_adds: int = 0  # tokens to request beyond the wanted limit, where the engine takes some away
    lora: bool = True  # False: a request cannot name an adapter


@dataclass(frozen=True, slots=True)
class ApiDialect(Served):
    """Differences of another API of this engine from [dialect], which is that of Chat Completions.

    A key left out is as there, and so are habits, except those that belong to the chunks of a chat.
    """

    exact_output: Fields | None = None
    extra: Fields | None = None
    refuses_neutral: tuple[Literal["temperature", "top_p"], ...] | None = None
    seed: Fields | None = None
    cache_salt: Fields | None = None
    tools: Fields | None = None
    thinking: Thinking | None = None
    structured: Structured | None = None
    habits: Habits = Habits()


@dataclass(frozen=True, slots=True)
class Dialect(Served):
    """Fields and paths of requests to this engine, in the API `api` once `with_api` has chosen it."""

    chat_path: str = "/v1/chat/completions"  # "": it has no Chat Completions
    api: ApiName = "chat"
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
    apis: dict[str, ApiDialect] = field(default_factory=dict)  # that it has beyond Chat Completions

    @property
    def api_path(self) -> str:
        return self.path or self.chat_path

    @property
    def api_names(self) -> tuple[ApiName, ...]:
        """APIs that this engine is declared to have, Chat Completions first."""
        return tuple(name for name in API_NAMES if name in self.apis or (name == "chat" and self.chat_path))


def with_api(dialect: Dialect, name: ApiName) -> Dialect:
    """Turns the dialect of Chat Completions into that of another API, which it must declare."""
    if name == "chat":
        return dialect
    own, api = dialect.apis[name], APIS[name]
    if api.gives != "text":  # nothing is drawn, forced, cached or constrained
        return Dialect(
            path=own.path or api.path,
            engine_args=own.engine_args,
            remove_args=own.remove_args,
            engine_env=own.engine_env,
            chat_path=dialect.chat_path,
            api=name,
            extra=own.extra or {},
            seed={},
            tools={},
            stream_usage=False,
        )
    changed: dict[str, Any] = {} if api.templated else {"tools": {}, "thinking": Thinking()}
    changed |= {key.name: value for key in fields(own) if (value := getattr(own, key.name)) is not None}
    of_chat = () if api.stream_options else ("done", "usage")  # chunks of Completions end like those of chat
    unknown = dict.fromkeys(("first_chunk", "reasoning_field", *of_chat))
    habits = {key: value for key, value in dataclasses.asdict(own.habits).items() if value is not None}
    if not api.stream_options:
        habits.setdefault("done", True)  # every stream of the API has the API's own end
    changed["habits"] = replace(dialect.habits, **{**unknown, **habits})
    return replace(dialect, **changed | {"api": name, "path": own.path or api.path})


def check_dialect(dialect: Dialect, where: str) -> None:
    """Raises SpecError for an unknown API, a placeholder that has no value in its table, or several answers
    to a request, which would be read as one.
    """
    for name in dialect.apis:
        check_known(name, API_NAMES[1:], f"{where}:dialect.apis", "API")
    _check_templates(dialect, f"{where}:dialect")
    for name in dialect.api_names[1:]:
        _check_templates(with_api(dialect, name), f"{where}:dialect.apis.{name}")


def _check_templates(dialect: Dialect, where: str) -> None:
    if dialect.extra.get("n", 1) != 1:
        raise SpecError(
            "one answer a request is measured",
            where=f"{where}.extra.n",
            hint="several at once: --concurrency",
        )
    places: dict[str, tuple[Fields, tuple[str, ...]]] = {
        "exact_output": (dialect.exact_output, ("max_tokens",)),
        "extra": (dialect.extra, ()),
        "seed": (dialect.seed, ("seed",)),
        "cache_salt": (dialect.cache_salt, ("salt",)),
        "tools": (dialect.tools, ("tools", "tool_choice")),
        "thinking.off": (dialect.thinking.off, ()),
        "thinking.on": (dialect.thinking.on, ()),
        "thinking.budget": (dialect.thinking.budget, ("budget",)),
    }
    for shape in fields(Structured):
        places[f"structured.{shape.name}"] = getattr(dialect.structured, shape.name), SHAPE_VALUES[shape.name]
    for key_path, (template, known) in places.items():
        for name in placeholders(template):
            if name not in known:
                raise SpecError(
                    f"unknown placeholder '{{{name}}}'",
                    where=f"{where}.{key_path}",
                    hint=nearest(name, known) or "nothing is filled in here",
                )
