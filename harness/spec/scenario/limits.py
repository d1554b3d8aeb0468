"""Checks that several tables share. Each raises SpecError that names the key."""

from typing import Any

from harness.errors import SpecError


def at_least(table: Any, where: str, least: float, *keys: str) -> None:
    for key in keys:
        if not getattr(table, key) >= least:
            raise SpecError(f"must be at least {least:g}, not {getattr(table, key)}", where=f"{where}.{key}")


def is_share(table: Any, where: str, key: str) -> None:
    if not 0 <= getattr(table, key) < 1:
        raise SpecError(f"must be from 0 to below 1, not {getattr(table, key)}", where=f"{where}.{key}")
