"""Errors a user can cause or must act on. One class per exit code; everything else is a bug."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    LIMIT_FAILED = 1
    USAGE = 2
    SETUP = 3
    INVALID = 4
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


def _shown(text: str) -> str:
    """What a terminal can show of names as they were given: line breaks and controls as they are written."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


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
