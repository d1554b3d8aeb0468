"""Says what stands at a dotted path, such as `ttft_ms.p50`, in a typed document or decoded JSON."""

import math
from collections.abc import Mapping
from typing import Any

from harness.model import UNSET, Record


def value_at(document: Any, path: str) -> Any:
    """None where there is no such place."""
    for key in path.split("."):
        document = _below(document, key)
    return document


def _below(document: Any, key: str) -> Any:
    if isinstance(document, Record):
        value = getattr(document, key, None) if key in document.__struct_fields__ else None
        return None if value is UNSET else value
    return document.get(key) if isinstance(document, Mapping) else None


def number_at(document: Any, path: str) -> float | None:
    """None too for null and for anything that is not a finite number."""
    value = value_at(document, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
