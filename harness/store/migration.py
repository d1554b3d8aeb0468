"""Documents of a run folder in older formats, read with today's names; the files stay as they are."""

from collections.abc import Mapping
from typing import Any

from harness.model import CellFacts, Summary
from harness.model.schema import RUN_FORMAT

# By place in a document of format 1, `*` for every item of a list or table: keys there, and what they are
# called now.
RENAMED: Mapping[type, Mapping[str, Mapping[str, str]]] = {
    CellFacts: {
        "request": {"unsaid": "unsupported"},
        "cache": {"wanted": "requested", "means": "method", "how": "description"},
        "telemetry": {"wanted": "requested"},
    },
    Summary: {
        "cells.*": {"nulls": "null_reasons"},
        "cells.*.answers.*.*": {"told": "constrained"},
        "cells.*.conditions": {"unsaid": "unsupported"},
        "cells.*.conditions.cache": {"wanted": "requested", "means": "description"},
        "cells.*.cost.price": {"of": "covers"},
        "cells.*.slo": {"of": "requests"},
        "cells.*.telemetry": {"wanted": "requested"},
        "noise.*": {"apart": "difference", "outer": "difference_upper"},
        "verdict_rules": {
            "much": "large_difference",
            "apart": "separate_sessions",
            "looked": "last_look",
        },
    },
}


def upgraded(document: dict[str, Any], kind: type) -> dict[str, Any]:  # JSON, before it is checked
    """The document in today's format. Whatever does not have the shape of `kind` is left for its check to
    find."""
    if document["schema"] == RUN_FORMAT:
        return document
    for path, names in RENAMED.get(kind, {}).items():
        document = _renamed(document, path.split("."), names)
    return {**document, "schema": RUN_FORMAT}


def _renamed(value: Any, path: list[str], names: Mapping[str, str]) -> Any:
    if isinstance(value, list) and path[:1] == ["*"]:
        return [_renamed(item, path[1:], names) for item in value]
    if not isinstance(value, dict):
        return value
    if not path:
        return {names.get(key, key): item for key, item in value.items()}
    step, *below = path
    return {key: _renamed(item, below, names) if step in ("*", key) else item for key, item in value.items()}
