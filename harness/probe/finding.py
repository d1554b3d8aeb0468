"""A finding from what is declared and what was seen."""

from harness.model import Finding


def held(
    topic: str,
    declared: str | bool | None,
    seen: str | bool | None,
    *,
    more: str = "",
    then: str = "",
    matters: bool = True,
) -> Finding:
    """Holds when both are equal. `more` is added to what was seen, `then` only where they differ."""
    stated, measured = _word(declared), _word(seen)
    holds = None if declared is None or seen is None else stated == measured
    differs = holds is False
    return Finding(
        topic,
        stated,
        ", ".join(filter(None, [measured, more])),
        holds,
        then if differs else "",
        differs and matters,
    )


def _word(value: str | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value or ""
