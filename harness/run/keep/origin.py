"""Says what is kept of each run in the user's cache, where no copy of a run folder reaches.

With which options it was begun, and the hashes of its plan and of what was measured. A run folder says the
same. But whoever sends a folder can write there which servers get requests, with which key of the
environment, and which programs are started; and whoever changes a figure can mend the checksums.
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
    """Stores the options before the first cell. `plan`: sha256 of plan.json, by its name.

    Raises StorageError. Without it, `bench resume` asks before it goes on.
    """
    write_json(_path(run_id), {"options": _plain(options), "files": dict(plan)})
    for old in sorted(_folder().glob("*.json"))[:-_KEPT]:
        old.unlink(missing_ok=True)


def keep_measured(run_id: str, measured: Mapping[str, str]) -> None:
    """Stores, at the end: sha256 of each file by its name. Raises StorageError.

    Nothing is kept of a run that this machine did not begin, or that had ended and was not begun again.
    """
    record = _record(run_id)
    if record and not record.get("ended"):
        write_json(_path(run_id), {**record, "files": dict(measured), "ended": True})


def begin_again(run_id: str, measured: Mapping[str, str], damaged: Container[str]) -> None:
    """Is called by `bench resume`, which adds files. A run whose files were changed meanwhile stays as it
    was recorded.

    `damaged`: files against which the checksums speak, which are measured again. Raises StorageError.
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
    """Returns what happened to each file that is not as this machine left it; None where it has no record
    of the run.

    Of a run that did not come to its end here, the plan alone is known.
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
