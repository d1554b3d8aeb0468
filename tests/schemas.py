"""Whether a document of a run is what its JSON schema, which others go by, says."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from harness.model.schema import path


def fault(document: Any, kind: str) -> str | None:
    """The gravest fault of a document and its path; None without any. Unknown keys are no fault."""
    found = best_match(Draft202012Validator(schema(kind)).iter_errors(document))
    if found is None:
        return None
    return f"{found.json_path}: {found.message[:200]}"


@cache
def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path(kind).read_text(encoding="utf-8"))
    return found
