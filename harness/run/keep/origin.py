"""Records of runs in the user's cache, which no copied run folder can change.

A record has the options that a run was begun with, and hashes of its plan and of what was measured. The run
folder has them too. But whoever sends a folder decides there which servers get requests, with which key of
the environment, and which programs are started; and whoever changes a figure can also correct the checksums.
"""

import dataclasses
from collections.abc import Container, Mapping
from pathlib import Path

from harness.host import paths
from harness.run.setup.options import RunOptions
from harness.store.atomic import json_bytes, write_json
from harness.untrusted import read_document

_KEPT = 1000  # runs; their records take some MB at the most
_HARMLESS = ("command", "out")  # what was typed, and where the folder lay then
_MOST_CHARS = 300  # of a value that is shown


def keep(run_id: str, options: RunOptions, plan: Mapping[str, str]) -> None:
    """Stores the options before the first cell. `plan` is the sha256 of plan.json, by its name.

    Raises StorageError. Without a record, `bench resume` asks before it goes on.
    """
    write_json(_path(run_id), {"options": _plain(options), "files": dict(plan)})
    for old in sorted(_folder().glob("*.json"))[:-_KEPT]:
        old.unlink(missing_ok=True)


def keep_measured(run_id: str, measured: Mapping[str, str]) -> None:
    """Stores the sha256 of each file by its name when a run ends. Raises StorageError.

    Nothing is stored for a run that this machine did not begin, or that ended and was not resumed.
    """
    record = _record(run_id)
    if record and not record.get("ended"):
        write_json(_path(run_id), {**record, "files": dict(measured), "ended": True})


def begin_again(run_id: str, measured: Mapping[str, str], damaged: Container[str]) -> None:
    """Reopens the record of a run that `bench resume` adds files to. Raises StorageError.

    If files were changed since the run ended, the record stays as it is. `damaged` files do not count: their
    checksums differ, so they are measured again.
    """
    record = _record(run_id)
    if (
        record
        and record.get("ended")
        and all(name in damaged for name in changed_files(run_id, measured) or ())
    ):
        plan = {name: sha256 for name, sha256 in measured.items() if name == "plan.json"}
        write_json(_path(run_id), {**record, "files": plan, "ended": False})


def changed_files(run_id: str, measured: Mapping[str, str]) -> dict[str, str] | None:
    """What happened to each file that differs from this machine's record; None without a record.

    For a run that did not end on this machine, the record only has the plan.
    """
    record = _record(run_id)
    files = (record or {}).get("files")
    if record is None or not isinstance(files, dict):
        return None
    changed = {
        name: "is missing, and was measured on this machine"
        if name not in measured
        else "is not what this machine wrote when it measured"
        for name, sha256 in files.items()
        if measured.get(name) != sha256
    }
    if record.get("ended") is True:
        changed |= dict.fromkeys(measured.keys() - files.keys(), "was added after this machine measured")
    return changed


def differences(run_id: str, options: RunOptions) -> list[str]:
    """A line for each option of a run folder that differs from the user's on this machine.

    Without a record of the run, a line for each option that differs from its default.
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
    options = (_record(run_id) or {}).get("options")
    return options if isinstance(options, dict) else None


def _record(run_id: str) -> Mapping[str, object] | None:
    try:
        document = read_document(_path(run_id).read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _folder() -> Path:
    return paths.cache_dir() / "begun"


def _path(run_id: str) -> Path:
    return _folder() / f"{run_id}.json"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
