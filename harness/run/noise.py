"""Noise floors measured on this machine, kept in the cache folder for the verdicts of later runs."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness import paths
from harness.store.atomic import storage_error, write_json

# Of another machine they say nothing. The host name is not among them: a container has a new one each time.
_IDENTITY = ("machine", "cpu", "cpus_usable", "gpus")

Floors = dict[str, dict[str, dict[str, float]]]  # backend → load label → metric → share


def path() -> Path:
    return paths.cache_dir() / "noise.json"


def stored(host: Mapping[str, Any], scenario: str) -> Floors:
    """Empty where nothing was measured, or nothing that this version wrote."""
    found = _read().get(_key(host, scenario))
    return found if isinstance(found, dict) else {}


def store(host: Mapping[str, Any], scenario: str, noise: Iterable[Mapping[str, Any]]) -> None:
    """Replaces what was known of the same backends and loads. Raises StorageError."""
    floors = stored(host, scenario)
    for one in noise:
        load = f"{one['load']['kind'][0]}{one['load']['value']:g}"
        floors.setdefault(one["backend"], {}).setdefault(load, {})[one["metric"]] = one["apart"]
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, target) from error
    write_json(target, {**_read(), _key(host, scenario): floors})


def _key(host: Mapping[str, Any], scenario: str) -> str:
    return json.dumps([scenario, *(host.get(name) for name in _IDENTITY)])


def _read() -> dict[str, Any]:
    try:
        content = json.loads(path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
