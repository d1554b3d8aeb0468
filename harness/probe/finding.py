"""What a probe found: declared, seen, and what follows from a difference."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """`holds` is None where nothing is declared, or where what was seen does not tell."""

    topic: str
    declared: str
    seen: str
    holds: bool | None
    then: str = ""  # what the harness does about it; "" where nothing has to be done
    matters: bool = False  # it does not hold, and figures mean something else for it


@dataclass(frozen=True, slots=True)
class Probed:
    backend: str
    variant: str | None
    base_url: str
    served_name: str
    version: str | None
    simulated: bool
    findings: tuple[Finding, ...]
    prompt_tokens: Mapping[str, int | None]  # of two fixed chats, as the engine's template makes them
    requests: int
    wall_s: float

    @property
    def mismatches(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.holds is False)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def held(
    topic: str,
    declared: str | bool | None,
    seen: str | bool | None,
    *,
    more: str = "",
    then: str = "",
    matters: bool = True,
) -> Finding:
    """Holds when the words are equal. `more` is said beside what was seen, `then` only where they differ."""
    said, found = _word(declared), _word(seen)
    holds = None if declared is None or seen is None else said == found
    differs = holds is False
    return Finding(
        topic,
        said,
        ", ".join(filter(None, [found, more])),
        holds,
        then if differs else "",
        differs and matters,
    )


def _word(value: str | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value or ""
