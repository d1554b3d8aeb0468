"""A command's options as a frozen dataclass, made in one place of what argparse parsed."""

import argparse
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

T = TypeVar("T", bound="Flags")


@dataclass(frozen=True)
class Flags:
    """Base of each command's `Options`: a field has the destination of its flag as its name."""

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        """A command overrides it where several flags make up one value."""
        return typed(cls, parsed)


@dataclass(frozen=True)
class ResultForms(Flags):
    """Flags that `options.add_result_forms` adds."""

    json: bool
    verbose: bool


@dataclass(frozen=True)
class RunOutput(ResultForms):
    """Flags that `options.add_run_output` adds."""

    no_report: bool
    metrics_port: tuple[str, int] | None


def typed(kind: type[T], parsed: argparse.Namespace, **known: object) -> T:
    """Takes each field from `known`, else from the flag of that destination. What another action of the
    command than the called one has keeps its default.
    """
    given = {**vars(parsed), **known}
    names = [field.name for field in fields(kind) if field.name in given]
    return kind(**{name: frozen(given[name]) for name in names})


def frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
