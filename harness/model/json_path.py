"""Looks up dotted paths, such as `ttft_ms.p50`, in typed documents and decoded JSON."""

import math
from collections.abc import Mapping
from typing import Any

from harness.model import UNSET, Record


def value_at(document: Any, path: str) -> Any:
    """The value at the path; None if the path does not exist or is UNSET.

    A key of a mapping may have dots itself, as the class `2.5 s` has: the longest one that fits is taken.
    """
    while path and document is not None:
        key = path.partition(".")[0]
        if isinstance(document, Record):  # first: a mapping takes ten times as long to be known as one
            value = getattr(document, key, None) if key in document.__struct_fields__ else None
            document = None if value is UNSET else value
        elif isinstance(document, Mapping):
            key = max((name for name in document if f"{path}.".startswith(f"{name}.")), key=len, default=key)
            document = document.get(key)
        else:
            return None
        path = path[len(key) + 1 :]
    return document


def number_at(document: Any, path: str) -> float | None:
    """The finite number at the path; None for anything else, booleans included."""
    value = value_at(document, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
