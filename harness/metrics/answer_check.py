"""One answer against the expected one."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness.records.finish import Finish, finish_of
from harness.records.request_table import Expected

VALID = "valid"
TRUNCATED = "truncated"  # the token limit cut off what is not right so far
UNJUDGED = "unjudged"  # what the answer is held to cannot be evaluated here

_FENCE = re.compile(r"^\s*```[a-z]*\s*\n(.*?)\n?```\s*$", re.DOTALL)
_MISSING = object()

# True, or False with nothing more to say; None: cannot be evaluated.
Holds = Callable[[Any], bool | None]


def judge(expected: Expected, text: str, tool_calls: str, finish_reason: str) -> str:
    """VALID, or what is wrong. `text` is the answer itself, without reasoning."""
    if expected.check == "label":
        result = _label(expected.value["labels"], expected.value["label"], text)
    elif expected.check == "tool_call":
        result = _tool_call(expected.value, tool_calls)
    elif expected.check == "regex":
        result = VALID if re.fullmatch(expected.value, text.strip()) else "pattern"
    elif expected.check == "choice":
        result = VALID if text.strip() in expected.value else "choice"
    else:
        result = _json(None if expected.check == "json_object" else expected.value, text)
    cut = (
        finish_of(finish_reason) is Finish.CUT and expected.check != "label"
    )  # one that names none in time is wrong
    return TRUNCATED if cut and result not in (VALID, UNJUDGED) else result


def _label(labels: Sequence[str], right: str, text: str) -> str:
    """Goes by the first label that the answer names."""
    pattern = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    named = re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE)
    if named is None:
        return "no label"
    return VALID if named[0].lower() == right.lower() else "wrong label"


def _tool_call(schemas: Mapping[str, object], tool_calls: str) -> str:
    """Every call must name a tool that was offered, with arguments that it takes."""
    calls = json.loads(tool_calls) if tool_calls else []
    if not calls:
        return "no call"
    for call in calls:
        if call["name"] not in schemas:
            return "unknown tool"
        result = _json(schemas[call["name"]], call["arguments"])
        if result != VALID:
            return result
    return VALID


def _json(schema: Any, text: str) -> str:
    value = _parsed(text)
    if value is _MISSING:
        fenced = _FENCE.match(text)
        return "fenced" if fenced and _parsed(fenced[1]) is not _MISSING else "not JSON"
    if schema is None:
        return VALID if isinstance(value, dict) else "schema"
    holds = _validator(json.dumps(schema, sort_keys=True))(value)
    return UNJUDGED if holds is None else VALID if holds else "schema"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return _MISSING


def _no_number(name: str) -> None:
    """Refuses NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


@lru_cache(maxsize=512)
def _validator(schema: str) -> Holds:
    """Opens no address and no file that the schema names: somebody else may have written it."""
    import jsonschema  # 0.3 s to import, and only some workloads need it
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable

    parsed = json.loads(schema)
    kind = validator_for(parsed, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(parsed)
    except jsonschema.SchemaError:
        return lambda _value: None

    def holds(value: Any) -> bool | None:
        try:
            return bool(kind(parsed, registry=REGISTRY).is_valid(value))
        except (Unresolvable, re.error, RecursionError, ArithmeticError, ValueError):
            return None

    return holds
