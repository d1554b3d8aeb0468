"""Folders in the cache that several runs of bench share: complete or absent, built by one at a time."""

import fcntl
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.errors import SetupError, reason
from harness.host import paths
from harness.spec.files import fingerprint

Say = Callable[[str], None]  # one progress line

Facts = TypeVar("Facts", bound=msgspec.Struct)

_MARKER = ".complete.json"


def folder_of(kind: str, name: str, made_of: Sequence[object]) -> Path:
    """The folder of the cache for what is made of this: of anything else it is another one."""
    return paths.cache_dir() / kind / f"{name}-{fingerprint(made_of)[:12]}"


def completed(folder: Path, kind: type[Facts]) -> Facts | None:
    """The facts that the builder of `folder` left; None if it is absent, may not be entered or was
    interrupted, or is an environment whose Python was removed from this machine.
    """
    python = folder / "bin" / "python"
    try:
        if python.is_symlink() and not python.exists():
            return None
        return msgspec.json.decode((folder / _MARKER).read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def built(
    folder: Path,
    what: str,
    build: Callable[[Path], Facts],
    kind: type[Facts],
    say: Say,
    *,
    force: bool = False,
) -> Facts:
    """Facts of the complete `folder`; `build` fills it first where it is absent, broken off or forced.

    It is built in its final place, because the programs of a virtual environment name their own path;
    the marker written last is what makes it complete.
    """
    facts = completed(folder, kind)
    if facts is not None and not force:
        return facts
    try:
        with _lock(folder, what, say):
            facts = completed(folder, kind)  # another run may have built it while this one waited
            if facts is not None and not force:
                return facts
            (folder / _MARKER).unlink(missing_ok=True)  # first: a removal may be broken off
            shutil.rmtree(folder, ignore_errors=True)
            paths.made(folder)
            try:
                facts = build(folder)
            except BaseException:  # Ctrl-C too: gigabytes of a half-built environment are of no use
                shutil.rmtree(folder, ignore_errors=True)
                raise
            partial = folder / f"{_MARKER}.part"
            partial.write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1))
            partial.replace(folder / _MARKER)
            return facts
    except OSError as error:
        raise SetupError(
            f"{what} cannot be stored: {reason(error)}",
            where=str(folder),
            hint="free some space, or name another folder with BENCH_CACHE",
        ) from error


class _Filled(msgspec.Struct):
    pass


def filled(folder: Path, what: str, fill: Callable[[Path], None], say: Say, *, force: bool = False) -> None:
    """Fills `folder` as `built` does, where nothing but its files is to be known of it."""

    def build(target: Path) -> _Filled:
        fill(target)
        return _Filled()

    built(folder, what, build, _Filled, say, force=force)


@contextmanager
def _lock(folder: Path, what: str, say: Say) -> Iterator[None]:
    paths.made(folder.parent)
    with folder.with_name(f"{folder.name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another bench that prepares {what}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
