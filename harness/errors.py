"""Errors a user can cause or must act on. One class per exit code; everything else is a bug."""

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType

_LOGIN = re.compile(r"(?<=:/)(/?)[^/\s]+@")  # of a URL; Path makes one `/` of two
DOCUMENTATION = "https://llm-servebench.github.io/llm-servebench/"


class ExitCode(IntEnum):
    OK = 0
    LIMIT_FAILED = 1
    USAGE = 2
    SETUP = 3
    INVALID = 4
    SKIPPED = 125  # to `git bisect run`: this commit cannot be judged, try another
    INTERRUPTED = 130
    UNREAD = 141  # as of other commands that SIGPIPE ends: a gate that nobody heard has not passed


class BenchError(Exception):
    """Printed as `error: WHERE: WHAT` with an optional `hint:` line; never as a traceback.

    Each is one inert line, whatever it quotes; `below` is shown under WHAT: lines of a log.
    """

    exit_code = ExitCode.LIMIT_FAILED

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, below: str = ""
    ) -> None:
        self.what = "\n".join([_shown(what), *map(_shown, below.splitlines())])
        self.where = None if where is None else _shown(where)
        self.hint = None if hint is None else _shown(hint)
        super().__init__(f"{self.where}: {self.what}" if self.where else self.what)
        if self.hint:
            self.add_note(f"hint: {self.hint}")  # for who sees it as Python shows errors


def _shown(text: str) -> str:
    """Returns what a terminal can show of names as they were given: line breaks and controls as they are
    written. User and password of a URL are left out: errors stand in logs of CI, and in the run folder.
    """
    text = _LOGIN.sub(r"\1***@", text)
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def reason(error: BaseException) -> str:
    """Returns an error's text; of the system's, without the number and the path, which is where it is."""
    return getattr(error, "strerror", None) or str(error)


class SpecError(BenchError):
    """A flag, a scenario, a backend or a model definition is wrong."""

    exit_code = ExitCode.USAGE


class DamagedError(SpecError):
    """A file of a run is not what was written."""


class SetupError(BenchError):
    """The machine lacks something: engine, model, port, Docker, GPU, disk space."""

    exit_code = ExitCode.SETUP


class StorageError(SetupError):
    """Results cannot be written: nothing that is measured from here on could be kept."""


@contextmanager
def writing(where: str) -> Iterator[None]:
    """Around code that writes a file for the user: what the system says of it is a StorageError, and so is a
    NUL in its name, which `where` holds.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "\0" not in where:
            raise
        raise StorageError(f"cannot be written: {reason(error)}", where=where) from error


def page_address(name: str, part: str = "") -> str:
    """Returns where a page of docs/ can be read: an installed package has none of them."""
    return f"{DOCUMENTATION}{name}.html{f'#{part}' if part else ''}"


def extra_hint(name: str) -> str:
    """Returns how an extra is installed: from a checkout, since no package index has the package yet."""
    return f"pip install './llm-servebench[{name}]', where ./llm-servebench is a checkout"


_FULL = "free some space, or choose another disk: --out for results, TMPDIR for temporary files, BENCH_CACHE"
_CLOSED = "choose a place that can be written: --out for results, TMPDIR for temporary files, BENCH_CACHE"
_UNMAPPED = "failed to map segment"  # of the loader, where a library does not fit into memory
_FEW = "raise the limit of open files, as `ulimit -n 4096` does"
_REFUSALS: Mapping[int | None, str] = MappingProxyType(
    {
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
        errno.EFBIG: "raise the limit of a file's size (`ulimit -f`), or choose another disk with TMPDIR",
        **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _CLOSED),
        **dict.fromkeys((errno.EMFILE, errno.ENFILE), _FEW),
        **dict.fromkeys((errno.ENOMEM, errno.EAGAIN), "end other programs, or ask for less load"),
        errno.EIO: "check the disk",
    }
)


NO_MEMORY = "raise the limit of memory (`ulimit -v`), or end other programs"


def refused(error: BaseException) -> SetupError | None:
    """Returns what this machine would not do; None for any other error, which is a defect of ours."""
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and _UNMAPPED in str(error)):
        return SetupError("no memory is left", hint=NO_MEMORY)
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno == errno.ENOENT and _is_nowhere():
        return SetupError(
            "the working directory was deleted", hint='call bench from a folder that exists: `cd "$HOME"`'
        )
    hint = _REFUSALS.get(error.errno)
    if hint is None:
        return None
    where = os.fspath(error.filename) if isinstance(error.filename, str | os.PathLike) else None
    return SetupError(os.strerror(error.errno).lower(), where=where, hint=hint)


def _is_nowhere() -> bool:
    try:
        Path.cwd()
    except OSError:
        return True
    return False
