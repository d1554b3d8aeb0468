"""Whether a document is what summary.schema.json says."""

import json
from functools import cache
from importlib import resources
from typing import Any

_CHARS = 200


def fault(summary: Any) -> str | None:
    """The gravest, as `where: what`; None of a summary that is as it should be. Unknown keys are no fault."""
    from jsonschema import Draft202012Validator  # 0.3 s to import
    from jsonschema.exceptions import best_match

    found = best_match(Draft202012Validator(schema()).iter_errors(summary))
    if found is None:
        return None
    what = found.message if len(found.message) <= _CHARS else f"{found.message[:_CHARS]}…"
    return f"{found.json_path.removeprefix('$').removeprefix('.') or 'the document'}: {what}"


@cache
def schema() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("summary.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
