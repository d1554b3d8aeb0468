"""What stands at a dotted path, such as `ttft_ms.p50`, in decoded JSON."""

import math
from collections.abc import Mapping
from typing import Any


def value_at(document: Any, path: str) -> Any:
    """None where there is no such place."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def number_at(document: Any, path: str) -> float | None:
    """None too for null and for anything that is not a finite number."""
    value = value_at(document, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
