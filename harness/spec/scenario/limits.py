"""What several tables check alike."""

from typing import Any

from harness.errors import SpecError


def at_least(table: Any, where: str, least: float, *keys: str) -> None:
    for key in keys:
        if not getattr(table, key) >= least:
            raise SpecError(f"must be at least {least:g}, not {getattr(table, key)}", where=f"{where}.{key}")
