"""results/history/runs.jsonl: one line per backend and load of every run, only ever appended to."""

import json
from collections.abc import Sequence
from pathlib import Path

from harness.errors import SpecError, reason
from harness.model import HistoryEntry, LoadPoint, as_json, from_json
from harness.model.schema import HISTORY_FORMAT
from harness.store.confined import Confined, storage_error
from harness.untrusted import BadDocumentError, read_document

_MOST_BYTES = 256 << 20  # two million lines
_HINT = "remove the line; the others stay"


def history_path(results: Path) -> Path:
    return results / "history" / "runs.jsonl"


def read_history(path: Path) -> list[HistoryEntry]:
    """One entry for each backend and load of a run: its last, as a run may be added again once it is whole.

    Raises SpecError for a line that is not one of this version. No file is an empty history.
    """
    try:
        lines = Confined(path.parent).read(path.name, _MOST_BYTES).decode().splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:  # not UTF-8, or a NUL in the name
        raise SpecError(f"cannot be read: {reason(error)}", where=str(path)) from None
    found: dict[tuple[str, str, LoadPoint | None], HistoryEntry] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            entry = _entry(line, f"{path}:{number}")
            found[entry.run, *entry.place] = entry
    return list(found.values())


def _entry(line: str, where: str) -> HistoryEntry:
    try:
        entry = read_document(line)
    except BadDocumentError:
        raise SpecError("not a line of JSON", where=where, hint=_HINT) from None
    if not isinstance(entry, dict) or entry.get("schema") != HISTORY_FORMAT:
        version = entry.get("schema") if isinstance(entry, dict) else None
        raise SpecError(
            f"schema {version!r} is not {HISTORY_FORMAT}, the one this version reads", where=where
        )
    try:
        return from_json(entry, HistoryEntry)
    except ValueError as error:
        raise SpecError(f"not what this version writes: {error}", where=where, hint=_HINT) from None


def append_history(path: Path, entries: Sequence[HistoryEntry]) -> int:
    """The number of lines added: a backend and load of a run that is there with the same figures is not added
    again. Raises StorageError.
    """
    known = {(entry.run, entry.place): entry for entry in read_history(path)}
    given = {(entry.run, entry.place): entry for entry in entries}
    new = [
        {"schema": HISTORY_FORMAT, **as_json(entry)}
        for key, entry in given.items()
        if known.get(key) != entry
    ]
    text = "".join(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n" for entry in new)
    results = path.parent.parent
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, results) from error
    files = Confined(results)
    files.make_folder(path.parent.name)
    files.append(f"{path.parent.name}/{path.name}", text.encode())
    return len(new)
