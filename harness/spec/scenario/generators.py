"""[prompts]: one dataclass per generator, chosen by the table's `generator`.

A new generator is a dataclass here, named in `Prompts`, and its maker in `harness.prompts.generate`.
`check` raises SpecError for values that no request can be made of.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from harness.errors import SpecError


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Unique prompts of one length; nothing shared."""

    input_tokens: int
    output_tokens: int
    generator: Literal["fixed-length"] = "fixed-length"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """Chats under a few shared system prompts, each with a unique question."""

    groups: int
    prefix_tokens: int
    question_tokens: int
    output_tokens: int
    zipf_exponent: float = 0.0  # popularity of the groups; 0: all alike
    generator: Literal["shared-prefix"] = "shared-prefix"

    def check(self, where: str) -> None:
        at_least(self, where, 1, "groups", "prefix_tokens", "question_tokens", "output_tokens")


Prompts = FixedLength | SharedPrefix


def at_least(table: Any, where: str, least: float, *keys: str) -> None:
    for key in keys:
        if not getattr(table, key) >= least:
            raise SpecError(f"must be at least {least:g}, not {getattr(table, key)}", where=f"{where}.{key}")


def _name(kind: type[Prompts]) -> str:
    return next(str(field.default) for field in fields(kind) if field.name == "generator")


GENERATORS: dict[str, type[Prompts]] = {_name(kind): kind for kind in get_args(Prompts)}
