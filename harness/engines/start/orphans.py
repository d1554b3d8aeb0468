"""Engines that a killed harness left behind, found by a note in the cache and cleared by the next start.

The guard normally sees to it that there are none; this is for the case that it was killed as well.
"""

import contextlib
import os
import platform
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.engines.provide.shared_folders import Say
from harness.errors import SetupError
from harness.host import paths
from harness.host.system_files import text_of


class Note(msgspec.Struct, kw_only=True):
    """The processes or the Compose project of an engine, and the bench that started it."""

    host: str = ""  # the cache may be shared: process numbers are of one machine; "": of ours
    label: str
    session: int
    log: str
    project: str = ""
    bench: int  # pid
    bench_born: int | None


@contextmanager
def noted(label: str, session: int, log: Path, project: str = "") -> Iterator[None]:
    """Keeps a note of the engine's processes, or of its Compose project, while the context lasts."""
    written = Note(
        host=platform.node(),
        label=label,
        session=session,
        log=str(log.resolve()),
        project=project,
        bench=os.getpid(),
        bench_born=born(os.getpid()),
    )
    note = _folder() / f"{platform.node()}-{session}.json"
    try:
        with contextlib.suppress(OSError):  # the cache may be read-only: then the guard alone must do
            paths.made(note.parent)
            note.write_bytes(msgspec.json.encode(written))
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink(missing_ok=True)


def stale() -> bool:
    """Returns whether a dead harness left something that the next start clears."""
    return any(not _alive(note) for _, note in _notes())


def _notes() -> Iterator[tuple[Path, Note]]:
    try:
        notes = sorted(_folder().glob("*.json"))
    except PermissionError:  # a home of somebody else, where nothing of ours is noted
        return
    for note in notes:
        try:
            content = msgspec.json.decode(note.read_bytes(), type=Note)
        except (OSError, msgspec.DecodeError):  # being removed or written, or another user's
            continue
        if content.host in ("", platform.node()):
            yield note, content


def _alive(note: Note) -> bool:
    return note.bench_born is not None and born(note.bench) == note.bench_born


def _ours(pid: int) -> bool:
    """Whether this is our process or below it: `bench up` may be the start command of a measured server."""
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(fields[1]) if (fields := fields_of(pid)) else 0
    return False


def clear(say: Say) -> list[str]:
    """Kills what dead harnesses left running; sentences for the record, about live neighbours too."""
    remarks = []
    for note, content in _notes():
        if _alive(content):
            if not _ours(content.bench):
                remarks.append(
                    f"another bench (pid {content.bench}) runs {content.label} on this machine "
                    "at the same time: its work adds to what is measured"
                )
            continue
        try:
            remarks += _clear_container(content) if content.project else _clear_processes(content)
        except SetupError as error:  # asked again at the next start
            remarks.append(f"{content.label} was left in a container by a bench that was killed: {error}")
            continue
        with contextlib.suppress(OSError):  # read-only as in `noted`, or another user's
            note.unlink(missing_ok=True)
    for remark in remarks:
        say(remark)
    return remarks


def _clear_processes(note: Note) -> list[str]:
    known = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    left = [pid for pid in known if _belongs(pid, note)]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    pids = ", ".join(map(str, left))
    return [f"stopped {note.label} (pid {pids}), left by a bench that was killed"] if left else []


def _clear_container(note: Note) -> list[str]:
    """Clears a container: its keeper is about to remove it, has done so, or was killed too."""
    from harness.engines.start.containers.daemon import Daemon
    from harness.engines.start.containers.service import STOP_GRACE_S

    removed = Daemon().remove_project(note.project, grace_s=STOP_GRACE_S)
    left = "removed its container" if removed else "nothing of its container is left"
    return [f"{note.label} was left by a bench that was killed: {left}"]


def _folder() -> Path:
    return paths.cache_dir() / "running"


def _belongs(pid: int, note: Note) -> bool:
    """Whether a process is in the engine's session and writes to its log. Its number alone is not enough to
    kill for, because the system gives it again.
    """
    try:
        output = str(Path(f"/proc/{pid}/fd/1").readlink())
    except OSError:  # gone meanwhile, or another user's
        return False
    fields = fields_of(pid)
    return bool(fields and int(fields[3]) == note.session and output.removesuffix(" (deleted)") == note.log)


def born(pid: int) -> int | None:
    """Start time in clock ticks since boot; None when there is no such process."""
    return int(fields[19]) if (fields := fields_of(pid)) else None


def fields_of(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on (proc(5)); empty when there is no such process."""
    return text_of(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
