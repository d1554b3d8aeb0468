"""Temporary folders: gone when bench ends, and where it was killed, removed by the next one that measures."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "bench-scratch-"


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """A folder of this user only. Its lock ends with the process, however that ends."""
    path, descriptor = _held(purpose)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def clear() -> None:
    """Removes what killed processes of this user have left; nothing on a file system without locks."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # held, another user's, or gone meanwhile
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _held(purpose: str) -> tuple[Path, int]:
    """Makes one until it holds it: another bench may clear it before."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-"))
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if path.exists():
            return path, descriptor
        os.close(descriptor)
