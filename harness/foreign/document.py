"""Foreign JSON: bounded in depth, every number finite and of 64 bits, every text inert."""

import json
import math
from collections.abc import Callable
from typing import Any

from harness.foreign.text import inert

DEEPEST = 64  # levels; no answer of an engine has ten
_MOST = 2**63  # and beyond it an integer counts nothing


class BadDocumentError(ValueError):
    """One sentence on what is wrong."""


def read_document(data: bytes | str, hidden: Callable[[str], str] = str) -> Any:
    """`hidden` takes credentials out of every text. A number that no machine word holds is None."""
    try:
        found = json.loads(data if isinstance(data, str) else data.decode("utf-8-sig"))
    except RecursionError:
        raise BadDocumentError(f"JSON nested deeper than {DEEPEST} levels") from None
    except ValueError as error:
        raise BadDocumentError(f"not JSON: {error}") from None
    return _clean(found, hidden, DEEPEST)


def _clean(value: Any, hidden: Callable[[str], str], levels: int) -> Any:
    if isinstance(value, str):
        return hidden(inert(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < _MOST else None
    if isinstance(value, dict | list) and not levels:
        raise BadDocumentError(f"JSON nested deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        return {hidden(inert(key)): _clean(item, hidden, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, hidden, levels - 1) for item in value]
    return value
