"""Whether a document of a run is what its schema says."""

import json
from functools import cache
from importlib import resources
from typing import Any, Literal

Document = Literal["manifest", "summary", "cell", "workload", "probe"]

_CHARS = 200


def fault(document: Any, kind: Document) -> str | None:
    """The gravest, with where it is; None where all is as it should be. Unknown keys are no fault."""
    from jsonschema import Draft202012Validator  # 0.3 s to import
    from jsonschema.exceptions import best_match

    found = best_match(Draft202012Validator(schema(kind)).iter_errors(document))
    if found is None:
        return None
    what = found.message if len(found.message) <= _CHARS else f"{found.message[:_CHARS]}…"
    where = found.json_path.removeprefix("$").removeprefix(".")
    return f"{where}: {what}" if where else what


@cache
def schema(kind: Document) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(f"{kind}.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
