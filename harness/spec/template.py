"""Fills `{placeholders}` in texts and tables."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

# A brace followed by a quote is JSON, which some flags and fields take as their value.
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def fill(template: Any, values: Mapping[str, object]) -> Any:
    """Fills a copy. A text that is only a placeholder becomes its value, of any type. Raises KeyError."""
    if isinstance(template, str):
        whole = PLACEHOLDER.fullmatch(template)
        if whole:
            return values[whole[1]]
        return PLACEHOLDER.sub(lambda match: str(values[match[1]]), template)
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, values) for value in template]
    return template


def placeholders(template: Any) -> Iterator[str]:
    """Names of the placeholders in texts at any depth, in order, repeated ones too."""
    if isinstance(template, str):
        yield from PLACEHOLDER.findall(template)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from placeholders(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from placeholders(value)
