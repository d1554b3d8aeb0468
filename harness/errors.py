"""Errors a user can cause or must act on. One class per exit code; everything else is a bug."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    LIMIT_FAILED = 1
    USAGE = 2
    SETUP = 3
    INVALID = 4
    INTERRUPTED = 130


class BenchError(Exception):
    """Printed as `error: WHERE: WHAT` with an optional `hint:` line; never as a traceback."""

    exit_code = ExitCode.LIMIT_FAILED

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what = what
        self.where = where
        self.hint = hint


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
