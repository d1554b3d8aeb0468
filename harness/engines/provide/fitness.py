"""Tells whether an engine's environment can be made on this machine at all: processor, Python, room on
the disk.
"""

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from harness.engines.provide.locks import Locked, locked_files
from harness.errors import SetupError
from harness.host.cpus import cpu_flags
from harness.spec.backend import Backend, Install, Process

MB = 1_000_000  # as `size_mb` counts
NEWEST = 20  # minor version of Python beyond which no wheel is looked for


def unfit(definition: Backend, python: tuple[int, int] | None) -> Iterator[SetupError]:
    """Reasons that no installation can change."""
    process = definition.process
    if process is None:
        return
    yield from _processor(process)
    if python and process.install and process.install.lock:
        yield from _python(locked_files(process.install, definition.name), process.install, python)


def _processor(process: Process) -> Iterator[SetupError]:
    here = platform.machine()
    if process.processors and here not in process.processors:
        yield SetupError(f"its packages are for {', '.join(process.processors)}, and this machine is {here}")
        return
    flags = cpu_flags()
    lacking = [flag for flag in process.cpu_flags if flag not in flags] if flags else []
    if lacking:
        yield SetupError(
            f"its packages need a CPU with {', '.join(lacking).upper()}, which this one does not have",
            hint="measure it on another machine, or attach to one with =http://HOST:PORT",
        )


def _python(locked: list[Locked], install: Install, python: tuple[int, int]) -> Iterator[SetupError]:
    """The first distribution of the lock that has no file for this Python."""
    lacking = next(
        (
            requirement
            for requirement in locked
            if requirement.needed(python) and requirement.here(python) is None
        ),
        None,
    )
    if lacking is None:
        return
    fitting = [f"3.{minor}" for minor in range(11, NEWEST) if _complete(locked, (3, minor))]
    yield SetupError(
        f"{lacking.name} {lacking.version} has no file for Python {python[0]}.{python[1]} on this machine",
        hint=f"its packages are made for Python {', '.join(fitting)}: install bench there"
        if fitting
        else f"its lock {install.lock} has none for another Python either: attach to a running server",
    )


def _complete(locked: list[Locked], python: tuple[int, int]) -> bool:
    return all(requirement.here(python) for requirement in locked if requirement.needed(python))


def check_room(name: str, folder: Path, needed_mb: int) -> None:
    """Raises SetupError where the disk below `folder`, which need not exist, holds less."""
    free = free_bytes(folder)
    if free is not None and free < needed_mb * MB:
        raise SetupError(
            f"{needed_mb:,} MB are to be installed in {folder}, where {free // MB:,} MB are free",
            where=name,
            hint="free some space, or name another folder with BENCH_CACHE",
        )


def free_bytes(folder: Path) -> int | None:
    """Returns the bytes free on the file system where `folder` is, or will be; None where it cannot be
    written.
    """
    existing = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if existing is None or not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return None
    return shutil.disk_usage(existing).free
