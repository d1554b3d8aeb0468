"""Tells whether an engine's environment can be made on this machine at all: processor, Python, room on
the disk.
"""

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from harness.engines.provide.interpreters import unfit_python
from harness.errors import SetupError
from harness.host import kit_env, paths
from harness.host.cpus import cpu_flags
from harness.spec.backend import Backend, Install, Process

MB = 1_000_000  # as `size_mb` counts
_INDEXES = ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX")


def unfit(definition: Backend, *, built: bool) -> Iterator[SetupError]:
    """Reasons why this machine cannot have or use its environment. `built`: it exists, with its Python."""
    process = definition.process
    assert process is not None
    yield from _processor(process)
    if process.install and not built:
        lacks = (unfit_index(process.install), unfit_python(process.install, definition.name))
        yield from filter(None, lacks)


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


def unfit_index(install: Install) -> SetupError | None:
    """Returns the error where its wheels are on an index that pip and uv do not know."""
    if not install.index or kit_env.kit() or any(map(os.environ.get, _INDEXES)):
        return None
    return SetupError(
        f"its wheels are on {install.index}, which pip does not search",
        hint="set PIP_EXTRA_INDEX_URL to its address, UV_INDEX for --dry-run; or use --launch compose",
    )


def check_room(name: str, folder: Path, needed_mb: int, words: str) -> None:
    """Raises SetupError where the disk below `folder`, which need not exist, holds less. `words`: of what is
    needed.
    """
    free = free_bytes(folder)
    if free is not None and free < needed_mb * MB:
        raise SetupError(
            f"{words} are to be installed in {folder}, where {free // MB:,} MB are free",
            where=name,
            hint="free some space, or name another folder with BENCH_CACHE",
        )


def free_bytes(folder: Path) -> int | None:
    """Returns the bytes free on the file system where `folder` is, or will be; None where it cannot be
    written.
    """
    existing = next((path for path in (folder, *folder.parents) if paths.entry(path)), None)
    if existing is None or not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return None
    return shutil.disk_usage(existing).free
