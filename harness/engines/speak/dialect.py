"""A request in an engine's dialect of its API, and what of a scenario the dialect has no field for."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from harness.apis import APIS, ApiName, Message
from harness.spec.backend import Backend
from harness.spec.dialect import Dialect
from harness.spec.files import laid_over
from harness.spec.scenario import Request, adapter_names
from harness.spec.template import fill
from harness.workload.prompts.request import Constraint

# What every regular-expression dialect takes for a sign; re.escape() also escapes what some refuse.
_SPECIAL = re.compile(r"[\\.^$|?*+()\[\]{}]")
_NEUTRAL = {"temperature": 0.0, "top_p": 1.0}
# Fields that are never the scenario's own: of what is read, and names of the length in other APIs.
_OF_BENCH = dict.fromkeys(
    ("model", "stream", "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens")
)
_ANY = [{"role": "user", "content": "text"}] * 2


@dataclass(frozen=True, slots=True)
class Chat:
    """One request, whatever the engine and its API."""

    messages: Sequence[Message]
    max_tokens: int
    constraint: Constraint | None = None
    tools: Sequence[Mapping[str, object]] = ()
    tool_choice: str = "auto"
    salt: str = ""  # sets its prefix apart from those of others; "": none
    adapter: str = ""  # that it names; "": the base model
    adapters: int = 0  # that the server has, as far as the scenario says
    later: bool = False  # another turn comes before it


def can_say(dialect: Dialect, constraint: Constraint) -> bool:
    """Whether `render_body` can put the constraint into the request; if not, it leaves it out."""
    return bool(getattr(dialect.structured, constraint.shape))


def render_body(definition: Backend, served_name: str, chat: Chat, request: Request) -> bytes:
    """A streaming request. Sampling is always explicit: defaults differ by engine and by model file.

    What the dialect has no field for is left out; `unsupported_fields` names it.
    """
    dialect, constraint, limit = definition.dialect, chat.constraint, chat.max_tokens
    api = APIS[dialect.api]
    body: dict[str, object] = {"model": served_name, **api.body(chat.messages, limit + dialect.limit_adds)}
    if request.cache_control and api.keep_prefix:
        body = api.keep_prefix(body)
    body |= common_fields(definition, request, limit, shaped=constraint is not None)
    body |= _adapter(definition, served_name, chat)
    if request.kept_turns and chat.later:
        body |= api.go_on
    if chat.salt:
        body |= fill(dialect.cache_salt, {"salt": chat.salt})
    if chat.tools:
        body |= fill(
            dialect.tools, {"tools": api.tools(chat.tools), "tool_choice": api.tool_choice(chat.tool_choice)}
        )
    if constraint is not None:
        body |= fill(getattr(dialect.structured, constraint.shape), _values(constraint))
    return api.encode(body)


def _adapter(definition: Backend, served_name: str, chat: Chat) -> dict[str, object]:
    """Fields that name the adapter. Every request to an engine with adapters has them: one that names none
    may be answered by the adapter of another.
    """
    count = chat.adapters or int(definition.engine.values.get("lora_adapters", 0))
    if not count or definition.lora is None:
        return {}
    scales = [
        {"id": number, "scale": 1.0 if name == chat.adapter else 0.0}
        for number, name in enumerate(adapter_names(count))
    ]
    values = {"adapter": chat.adapter or served_name, "adapter_scales": scales}
    fields: dict[str, object] = fill(definition.lora.request, values)
    return fields


def common_fields(
    definition: Backend, request: Request, max_tokens: int, *, shaped: bool = False
) -> dict[str, object]:
    """Returns what all requests of a scenario say alike: sampling, length, streaming, thinking, the
    engine's own.

    An answer with a shape (`shaped`) ends where the shape does: its length is never forced.
    """
    dialect = definition.dialect
    if APIS[dialect.api].gives != "text":
        return laid_over(_of_whole(request, dialect.api) | dialect.extra, request.fields)
    fields = _sampling(dialect, request) | {"stream": True}
    if dialect.stream_usage and APIS[dialect.api].stream_options:
        fields["stream_options"] = {"include_usage": True}
    if request.exact_output and not shaped:
        fields |= fill(dialect.exact_output, {"max_tokens": max_tokens})
    if request.grammar:
        fields |= fill(dialect.structured.grammar, {"grammar": request.grammar})
    if request.kept_turns:
        fields |= APIS[dialect.api].keep_turns
    fields |= dialect.thinking.on if request.thinking == "on" else dialect.thinking.off
    if request.thinking_budget is not None:
        fields |= fill(dialect.thinking.budget, {"budget": request.thinking_budget})
    return laid_over(fields | dialect.extra, request.fields)


def set_otherwise(definition: Backend, request: Request) -> str | None:
    """The first of the scenario's own fields, dotted, that another setting gives or may give; None: none is.

    What the definition sends with every request (`extra`) is neutral, and may be replaced.
    """
    dialect, api = definition.dialect, APIS[definition.dialect.api]
    bare = replace(definition, dialect=replace(dialect, extra={}))
    thinking, lora = dialect.thinking, definition.lora.request if definition.lora else {}
    given = (
        *(_OF_BENCH, api.body(_ANY, 1), common_fields(bare, replace(request, fields={}), 1)),
        *(thinking.on, thinking.off, thinking.budget, dialect.tools, dialect.cache_salt, lora),
        *asdict(dialect.structured).values(),
    )
    taken = [path for table in given for path in _paths(table)]
    return next((path for path in _paths(request.fields) if any(_meet(path, each) for each in taken)), None)


def _paths(fields: Mapping[str, object], above: str = "") -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and value:
            yield from _paths(value, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def _meet(first: str, second: str) -> bool:
    """Whether two paths are of one value, or one of a value inside the other."""
    return f"{first}.".startswith(f"{second}.") or f"{second}.".startswith(f"{first}.")


def unsupported_fields(
    definition: Backend,
    request: Request,
    constraints: Iterable[Constraint | None] = (),
    *,
    tools: bool = False,
    adapters: int = 0,
) -> dict[str, str]:
    """What of the scenario this engine's requests cannot carry: each name, and what that means."""
    dialect = definition.dialect
    if APIS[dialect.api].gives != "text":
        return {}
    missing = {
        f"structured.{constraint.shape}": f"no field for {constraint.shape}: its answers are not constrained"
        for constraint in constraints
        if constraint is not None and not can_say(dialect, constraint)
    }
    if request.thinking_budget is not None and not dialect.thinking.budget:
        missing["thinking_budget"] = "no field for it: the model reasons as long as it does"
    if request.grammar and not dialect.structured.grammar:
        missing["structured.grammar"] = "no field for grammar: its answers are not constrained"
    if request.cache_control and not APIS[dialect.api].keep_prefix:
        missing["cache_control"] = "no field for it: what is kept is the server's own choice"
    if request.exact_output and not dialect.exact_output:
        missing["exact_output"] = "answers may end before the asked length"
    if adapters and definition.lora is None:
        missing["lora"] = "no way to name an adapter: every request goes to the base model"
    if tools and not dialect.tools:
        missing["tools"] = "no field for tools: the model does not know of them"
    if request.temperature and not dialect.seed:
        missing["seed"] = "sampling cannot be repeated"
    if request.thinking == "on" and not dialect.thinking.on:
        missing["thinking"] = "thinking cannot be switched on: the model does as its template says"
    return missing


def _of_whole(request: Request, api: ApiName) -> dict[str, object]:
    if api == "transcriptions":
        language = {"language": request.language} if request.language else {}
        return {"temperature": request.temperature, **language}
    if api != "embeddings":
        return {}
    size = {} if request.dimensions is None else {"dimensions": request.dimensions}
    return {"encoding_format": request.encoding_format, **size}


def _sampling(dialect: Dialect, request: Request) -> dict[str, object]:
    fields: dict[str, object] = {
        name: value
        for name, value in (("temperature", request.temperature), ("top_p", request.top_p))
        if not (name in dialect.refuses_neutral and value == _NEUTRAL[name])
    }
    if request.temperature:
        fields |= fill(dialect.seed, {"seed": request.seed})
    return fields


def _values(constraint: Constraint) -> dict[str, object]:
    """The placeholders of the shape's template; harness.spec.dialect.SHAPE_VALUES names them."""
    value = constraint.value
    match constraint.shape:
        case "json_schema":
            return {"schema": value, "schema_text": json.dumps(value, ensure_ascii=False)}
        case "choice":
            return {
                "choices": list(value),
                "choices_regex": "(" + "|".join(_SPECIAL.sub(r"\\\g<0>", text) for text in value) + ")",
                "choices_grammar": "root ::= " + " | ".join(json.dumps(text) for text in value),
            }
        case "json_object":
            return {}
        case shape:
            return {shape: value}
