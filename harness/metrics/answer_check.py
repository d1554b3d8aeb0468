"""One answer against the expected one."""

import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from typing import Any

from harness.records.finish import Finish, finish_of
from harness.records.request_table import Expected

VALID = "valid"
TRUNCATED = "truncated"  # the token limit cut off what is not right so far
UNJUDGED = "unjudged"  # what the answer is held to cannot be evaluated here
MOST_S = 5.0  # of CPU time for one answer: a pattern that backtracks may never end

_FENCE = re.compile(r"```[^`\n]*\n")  # the line that opens one, as in CommonMark
# Scripts without a space between words, or, in Korean, between a word and its particle.
_UNSPACED = (
    r"\u0E00-\u11FF\u1780-\u17FF\u3000-\u31FF\u3400-\u9FFF\uA960-\uD7FF\uF900-\uFAFF\uFF66-\uFFDC"
    r"\U00020000-\U0003FFFF"
)
IN_WORD = rf"[^\W_{_UNSPACED}]"  # a label next to one of these is a part of a word
NOT_JSON = object()

# True, or False with nothing more to say; None: cannot be evaluated.
Holds = Callable[[Any], bool | None]


def judge(expected: Expected, text: str, tool_calls: str, finish_reason: str) -> str:
    """VALID, or what is wrong. `text` is the answer itself, without reasoning.

    Raises TimeoutError after MOST_S, in the main thread.
    """
    with limited(MOST_S):
        return _judged(expected, text, tool_calls, finish_reason)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises TimeoutError after so much CPU time, in the main thread: no other gets signals, for which
    Python's patterns look while they match.

    The timer counts the CPU time of all threads, so that it is set again for what others used.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    until_s = time.thread_time() + seconds

    def stop(*_: object) -> None:
        if (left_s := until_s - time.thread_time()) <= 0:
            raise TimeoutError
        signal.setitimer(signal.ITIMER_VIRTUAL, left_s)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _judged(expected: Expected, text: str, tool_calls: str, finish_reason: str) -> str:
    if expected.check == "label":
        result = _label(expected.value["labels"], expected.value["label"], text)
    elif expected.check == "tool_call":
        result = _tool_call(expected.value, tool_calls)
    elif expected.check == "regex":
        result = _pattern(expected.value, text.strip())
    elif expected.check == "choice":
        result = VALID if text.strip() in expected.value else "choice"
    else:
        result = _json(None if expected.check == "json_object" else expected.value, text)
    # A label that was not named in time is wrong.
    cut = finish_of(finish_reason) is Finish.CUT and expected.check != "label"
    return TRUNCATED if cut and result not in (VALID, UNJUDGED) else result


def _pattern(pattern: str, text: str) -> str:
    """The engine's patterns need not be Python's."""
    try:
        return VALID if re.fullmatch(pattern, text) else "pattern"
    except (re.error, OverflowError, RecursionError):
        return UNJUDGED


def _label(labels: Sequence[str], right: str, text: str) -> str:
    """Goes by the first label that the answer names."""
    pattern = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    named = re.search(rf"(?<!{IN_WORD})(?:{pattern})(?!{IN_WORD})", text, re.IGNORECASE)
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
        # Servers write no arguments as an empty text, or in `messages` as an object that no part follows.
        result = _json(schemas[call["name"]], call["arguments"] or "{}")
        if result != VALID:
            return result
    return VALID


def _json(schema: Any, text: str) -> str:
    value = parsed(text)
    if value is NOT_JSON:
        return "fenced" if parsed(inside_fence(text)) is not NOT_JSON else "not JSON"
    if schema is None:
        return VALID if isinstance(value, dict) else "schema"
    holds = _validator(json.dumps(schema, sort_keys=True))(value)
    return UNJUDGED if holds is None else VALID if holds else "schema"


def inside_fence(text: str) -> str:
    """What a code fence around all of the text holds; "" without one."""
    text = text.strip()
    opened = _FENCE.match(text)
    return text[opened.end() : -3] if opened and text.endswith("```") else ""


def parsed(text: str) -> Any:
    """The value of a JSON text, or NOT_JSON."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return NOT_JSON


def _no_number(name: str) -> None:
    """Refuses NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


@lru_cache(maxsize=512)
def _validator(schema: str) -> Holds:
    """Opens no address and no file that the schema names: somebody else may have written it."""
    import jsonschema  # 0.3 s to import, and only some workloads need it
    from jsonschema.validators import extend, validator_for
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable

    held_to = json.loads(schema)
    cannot = (
        *(jsonschema.SchemaError, Unresolvable, re.error, RecursionError, ArithmeticError, ValueError),
        *(TypeError, AttributeError),  # of a $schema or $ref that is no text
    )
    try:
        kind = validator_for(held_to, default=jsonschema.Draft202012Validator)
        kind.check_schema(held_to)
    except cannot:
        return lambda _value: None

    def multiple_of(_validator: object, step: Any, value: Any, _schema: object) -> Iterator[Any]:
        """Goes by the decimal digits: as binary fractions, 0.07 is no multiple of 0.01."""
        if kind.TYPE_CHECKER.is_type(value, "number"):
            exact = isinstance(value, int) and isinstance(step, int)
            if value % step if exact else Decimal(str(value)) % Decimal(str(step)):
                yield jsonschema.ValidationError(f"{value} is no multiple of {step}")

    exact_kind = extend(kind, {"multipleOf": multiple_of})
    if isinstance(held_to, dict):
        held_to.pop("$schema", None)  # a reference to the root would follow it back to `kind`

    def holds(value: Any) -> bool | None:
        try:
            return bool(exact_kind(held_to, registry=REGISTRY).is_valid(value))
        except cannot:
            return None

    return holds
