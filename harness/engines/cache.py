"""Folders in the cache that several runs of bench share: complete or absent, built by one at a time."""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import SetupError

Say = Callable[[str], None]  # one progress line

_MARKER = ".complete.json"


def completed(folder: Path) -> dict[str, Any] | None:
    """What the builder of `folder` left behind; None when it is absent or was interrupted."""
    try:
        facts: dict[str, Any] = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return None
    return facts


def built(
    folder: Path, what: str, build: Callable[[Path], dict[str, Any]], say: Say, *, force: bool = False
) -> dict[str, Any]:
    """Facts of the complete `folder`; `build` fills it first where it is absent, broken off or forced.

    It is built in its final place, because the programs of a virtual environment name their own path;
    the marker written last is what makes it complete.
    """
    facts = completed(folder)
    if facts is not None and not force:
        return facts
    try:
        with _lock(folder, what, say):
            facts = completed(folder)  # another run may have built it while this one waited
            if facts is not None and not force:
                return facts
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                facts = build(folder)
            except BaseException:  # Ctrl-C too: gigabytes of a half-built environment are of no use
                shutil.rmtree(folder, ignore_errors=True)
                raise
            partial = folder / f"{_MARKER}.part"
            partial.write_text(json.dumps(facts, indent=1), encoding="utf-8")
            partial.replace(folder / _MARKER)
            return facts
    except OSError as error:
        raise SetupError(
            f"{what} cannot be stored: {error.strerror or error}",
            where=str(folder),
            hint="free some space, or name another folder with BENCH_CACHE",
        ) from error


@contextmanager
def _lock(folder: Path, what: str, say: Say) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another bench that prepares {what}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
