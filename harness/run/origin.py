"""With which options a run was begun, kept in the user's cache, where no copy of a run folder reaches.

A run folder says the same in its manifest. But whoever sends a folder can write there which servers get
requests, with which key of the environment, and which programs are started.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from harness.host import paths
from harness.run.options import RunOptions
from harness.store.atomic import json_bytes, write_json
from harness.untrusted import read_document

_KEPT = 1000  # runs; their records take some MB at the most
_HARMLESS = ("command", "out")  # what was typed, and where the folder lay then
_MOST_CHARS = 300  # of a value that is shown


def keep(run_id: str, options: RunOptions) -> None:
    """Raises StorageError. Without it, `bench resume` asks before it goes on."""
    write_json(_path(run_id), {"options": _plain(options)})
    for old in sorted(_folder().glob("*.json"))[:-_KEPT]:
        old.unlink(missing_ok=True)


def differences(run_id: str, options: RunOptions) -> list[str]:
    """A line for each option of a run folder that is not as the user gave it on this machine.

    All that differ from the defaults, where nothing is known of this run.
    """
    given, known = _plain(options), _known(run_id)
    if known is None:
        default = _plain(RunOptions(scenario="", backends=""))
        return [f"{name} = {_short(value)}" for name, value in given.items() if value != default[name]]
    return [
        f"{name} = {_short(value)}, was {_short(known.get(name))}"
        for name, value in given.items()
        if value != known.get(name)
    ]


def _plain(options: RunOptions) -> dict[str, object]:
    document = read_document(json_bytes(dataclasses.asdict(options)))  # as both are stored
    return {name: value for name, value in document.items() if name not in _HARMLESS}


def _known(run_id: str) -> Mapping[str, object] | None:
    try:
        document = read_document(_path(run_id).read_bytes())
        options = document["options"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return options if isinstance(options, dict) else None


def _folder() -> Path:
    return paths.cache_dir() / "begun"


def _path(run_id: str) -> Path:
    return _folder() / f"{run_id}.json"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
