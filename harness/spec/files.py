"""Definition files: found by name or path, read as TOML, fingerprinted in canonical form."""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import SpecError, reason
from harness.host import paths
from harness.spec.strict import nearest
from harness.untrusted import BadDocumentError, read_tables

_MOST = 1 << 20  # characters; a tenth of it is much for people to write


def locate(kind: paths.Kind, name: str) -> Path:
    """Finds the file for the name of a known definition, or a path ending in .toml. Raises SpecError."""
    if name.endswith(".toml"):
        path = Path(name)
        entry = paths.entry(path)
        if entry == "file":
            return path
        hint = f"did you mean '{name[:-5]}'?" if name[:-5] in names(kind) else None
        raise SpecError("is a folder" if entry == "folder" else "no such file", where=name, hint=hint)
    known = paths.definition(kind, name)
    if known is None:
        what = {"workloads": "scenario", "workloads/suites": "suite", "backends": "backend"}[kind]
        raise SpecError(f"unknown {what} '{name}'", hint=nearest(name, names(kind)))
    return known


def check_scenario_name(path: Path, name: object) -> None:
    """Raises SpecError for a file that is found by its own name and calls itself otherwise: what is measured
    would have a name that no command takes, or that of another scenario."""
    found = paths.definition("workloads", path.stem)
    if isinstance(name, str) and name != path.stem and found is not None and found.samefile(path):
        raise SpecError(
            f"calls itself '{name}', and is found as '{path.stem}'",
            where=str(path),
            hint="give both one name",
        )


def names(kind: paths.Kind) -> list[str]:
    """Names of the known definitions, sorted."""
    return sorted(set(paths.definitions(kind)) - {"models"})


def read_toml(path: Path) -> dict[str, object]:
    return read_tables_of(read_text(path), str(path))


def read_text(path: Path) -> str:
    """The text of a file that people write, of which some editors mark the encoding at its begin. Raises
    SpecError for one that is too long, as /dev/zero is.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST + 1)
    except UnicodeDecodeError:
        raise SpecError("is not UTF-8 text", where=str(path), hint="save it as UTF-8") from None
    except (OSError, ValueError) as error:  # a NUL in the name
        raise SpecError(f"cannot be read: {reason(error)}", where=str(path)) from None
    if len(text) > _MOST:
        raise SpecError(f"is longer than {_MOST:,} characters", where=str(path))
    return text


def read_tables_of(text: str, where: str) -> dict[str, object]:
    try:
        return read_tables(text)
    except (tomllib.TOMLDecodeError, BadDocumentError) as error:
        raise SpecError(f"not valid TOML: {error}", where=where) from None


def canonical(value: Any) -> str:
    """JSON with sorted keys, so that equal content gives equal text on every machine."""
    plain = (
        dataclasses.asdict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else value
    )
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: Any) -> str:
    """sha256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def laid_over(table: Mapping[str, object], change: Mapping[str, object]) -> dict[str, object]:
    """Copies `table` with the keys of `change` replaced or added, also inside of tables that both have."""
    result = dict(table)
    for key, value in change.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = laid_over(below, value) if both else value  # type: ignore[arg-type]  # both are tables
    return result


def override(table: Mapping[str, object], dotted: str, value: Any, above: str = "") -> dict[str, object]:
    """Copies `table` with the key at `dotted` (`load.requests`) replaced or added. Raises SpecError.

    `above`: keys that lead to `table` itself, each with its dot.
    """
    head, _, rest = dotted.partition(".")
    result = dict(table)
    if not rest:
        result[head] = value
        return result
    inner = result.get(head, {})
    if not isinstance(inner, Mapping):
        raise SpecError(f"'{head}' is not a table", where=f"{above}{dotted}")
    result[head] = override(inner, rest, value, f"{above}{head}.")
    return result
