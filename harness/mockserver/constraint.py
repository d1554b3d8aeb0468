"""The constraint that a request puts on its answer, in the fields of a dialect, and an answer that fits."""

import json
from collections.abc import Mapping
from typing import Any

from harness.mockserver.dialect import Kind, Path, Structure
from harness.mockserver.sample import UnsupportedError, of_grammar, of_regex, of_schema

_MISSING = object()
PIECE_CHARS = 4  # of the text of an answer: as the tokenizer cuts a prompt by default


def constrained_text(body: Mapping[str, object], structure: Structure) -> str | None:
    """None: the request has no constraint that the engine reads. Raises UnsupportedError for others."""
    constraint = _format(body.get("response_format"), structure)
    for path, kind in structure.fields.items():
        value = value_at(body, path)
        if value is not _MISSING and value is not None:
            constraint = kind, value
    return None if constraint is None else _text(*constraint)


def pieces(text: str) -> tuple[str, ...]:
    """Returns the text as tokens."""
    return tuple(text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)) or ("",)


def _format(asked: Any, structure: Structure) -> tuple[Kind, Any] | None:
    if asked is None or (not structure.formats and not structure.refuses_other_formats):
        return None
    kind_name = str(asked.get("type")) if isinstance(asked, Mapping) else ""
    if kind_name not in structure.formats:
        if structure.refuses_other_formats:
            known = ", ".join(structure.formats) or "none"
            raise UnsupportedError(f"response_format: type {kind_name!r} is not one of {known}")
        return None
    form = structure.formats[kind_name]
    if form is None:
        return None
    kind, path = form
    value = value_at(asked, path)
    if value is _MISSING:
        if kind == "json_object":
            return kind, None
        raise UnsupportedError(f"response_format: field {'.'.join(path)} is required for {kind_name}")
    return ("json_schema", value) if kind == "json_object" else (kind, value)


def value_at(body: Any, path: Path) -> Any:
    """`_MISSING` where there is nothing."""
    for part in path:
        if not isinstance(body, Mapping) or part not in body:
            return _MISSING
        body = body[part]
    return body


def _text(kind: Kind, value: Any) -> str:
    match kind:
        case "json_schema":
            return of_schema(json.loads(value) if isinstance(value, str) else value)
        case "json_object":
            return '{"answer": "text"}'
        case "regex":
            return of_regex(str(value))
        case "choice":
            if not isinstance(value, list) or not value:
                raise UnsupportedError("choice must be a list that is not empty")
            return str(value[0])
    return of_grammar(str(value))
