"""Runs found by their path, by their name, or by something in their folder."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path

from harness.errors import SetupError, SpecError
from harness.host import paths
from harness.model.numbers import counted
from harness.store.folder import RUN_ID, RunFolder, stored_runs
from harness.store.history import history_path

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
SEALED = ("manifest.json", "checksums.json")  # what the folder of a run has when it is done
# Of all that lies in the folder of a run, what bench made: the results of another tool may be next to it.
_OWN = (
    *SEALED, "plan.json", "workload.json", "summary.json", "probe-*.json", "table.*", "report.html",
    "cells", "set-aside", "workloads", "agreement", "logs", "plots",
)  # fmt: skip


def open_run(name: str, results: Path) -> RunFolder:
    """`name`: a path, or the name (or a unique beginning of it) of a run under `results`, or its age there.

    `latest` is the run that began last, and `latest~1` the one before it; so is `DIR/latest` of those in DIR.
    """
    hint = f"`bench list runs` shows what is in {results}"
    if not name:
        raise SpecError("the name of a run is empty", where="RUN", hint=hint)
    direct = Path(name)
    entry = paths.entry(direct)
    if entry == "folder":
        return _checked(direct)
    if entry is None and (aged := _LATEST.fullmatch(direct.name)):
        folder = direct.parent if direct.parent.name else results
        return _checked(_begun(int(aged[1] or 0), folder, name))
    matches = _beginning_with(direct, results)
    if len(matches) == 1:
        return _checked(matches[0])
    if matches:
        raise SpecError(f"matches several runs: {', '.join(path.name for path in matches)}", where=name)
    what = "no such run" if entry is None else "is a file, not the folder of a run"
    if entry and (around := run_around(direct)):
        hint = _of_run(around)
    raise SpecError(what, where=name, hint=hint)


def _begun(before: int, folder: Path, name: str) -> Path:
    """The run that began last, or as many before it, by the time in its name, which a copy keeps."""
    runs = [run.path for run in stored_runs(folder) if RUN_ID.fullmatch(run.path.name)]
    if before >= len(runs):
        what = f"{counted(len(runs), 'run')} in {folder}" if runs else f"no run in {folder}"
        hint = "--out names the folder of the runs; one with a name of another form is named by its path"
        raise SpecError(what, where=name, hint=hint)
    return runs[-1 - before]


def run_around(path: Path) -> Path | None:
    """The folder of the run of which this is a part; None: it is a run itself, in none, or bench did not
    make it."""
    whole = path.absolute()
    folders = [whole, *whole.parents][:4]  # of a file of a cell: cells/NAME/FILE
    found = next((folder for folder in folders if all(paths.entry(folder / own) for own in SEALED)), None)
    if found is None or found == whole:
        return None
    first = whole.relative_to(found).parts[0]
    return found if any(fnmatchcase(first, own) for own in _OWN) else None


def holds_history(path: Path) -> bool:
    """Whether this is the folder of the history that lies among runs, as `results/*` has it."""
    log = history_path(path.parent)
    return path == log.parent and paths.entry(log) == "file"


def refuse_file_of_run(path: Path, where: str) -> None:
    """Raises SpecError where a file at `path` would be one of a run. `where`: the flag."""
    if around := run_around(path):
        hint = "choose another file; nothing was written"
        raise SpecError(f"would be a file of the run {around}", where=where, hint=hint)


def _of_run(around: Path) -> str:
    return f"the folder of its run is {around}"


def _checked(path: Path) -> RunFolder:
    """Raises unless nothing in it leads out of it, so that a command begins only on a folder that is safe to
    work in."""
    if around := run_around(path):
        raise SpecError("is a part of a run, not its folder", where=str(path), hint=_of_run(around))
    folder = RunFolder(path)
    try:
        folder.files.check()
    except PermissionError:
        shared = f"chmod -R a+rX {shlex.quote(str(path))}"
        hint = f"a run is made for its owner alone, who can share it: `{shared}`"
        raise SetupError("may not be read: permission denied", where=str(path), hint=hint) from None
    if not paths.entry(path / "manifest.json") and any(map(paths.entry, path.glob("*/manifest.json"))):
        hint = f"name one of them: `bench list runs --out {shlex.quote(str(path))}`"
        raise SpecError("holds runs, and is none itself", where=str(path), hint=hint)
    if holds_history(path):
        hint = f"name runs alone: {shlex.quote(str(path.parent))}/2*"
        raise SpecError("is the history of runs, and none itself", where=str(path), hint=hint)
    return folder


def _beginning_with(name: Path, results: Path) -> list[Path]:
    """Folders under `results` by the beginning of their name, in which nothing is a wildcard."""
    if name.is_absolute():
        return []
    try:
        siblings = list((results / name).parent.iterdir())
    except (OSError, ValueError):
        return []
    return sorted(
        path for path in siblings if path.name.startswith(name.name) and paths.entry(path) == "folder"
    )
