"""What was computed of a run, kept in the user's cache: a run that has not changed gives it at once.

Nothing of it lies in the folders of runs. A stranger's folder brings nothing along, one that is read-only has
it too, and all of it can be deleted at any time. A file of the cache is named by a digest of all that its
value was made of: a change of the run or of the code leads to another name, and need not be noticed.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from harness.errors import BenchError
from harness.host import paths
from harness.model import Record, as_json, from_json
from harness.store.atomic import write_json
from harness.store.confined import Confined
from harness.untrusted import read_document

T = TypeVar("T", bound=Record)

_CODE = Path(__file__).parents[1]
_MOST = 10_000  # values, the last computed ones
# Two changes of a file within a tick of its file system's clock look like one: ticks take up to two seconds.
_TICK_S = 3
_LOADED_S = 60  # code that changed so recently may not be what this process has loaded


def computed_once(
    files: Confined, kind: type[T], compute: Callable[[], T], names: Sequence[str] | None = None
) -> T:
    """The value that `compute` makes of a run's folder alone. Raises as `compute` does.

    `names`: of the files that it reads, as far as they are there; None: of all. A cache that cannot be read
    or written costs nothing but the time to compute.
    """
    path = None
    with suppress(BenchError, OSError, ValueError, ImportError):
        found = files.walk() if names is None else _named(files, names)
        code, run = _state_of_code(_CODE), _state(files.root, found, _TICK_S)
        if code and run:
            key = hashlib.sha256(code + run + kind.__name__.encode()).hexdigest()
            path = paths.cache_dir() / "derived" / f"{key}.json"
            return from_json(read_document(Confined(path.parent).read(path.name)), kind)
    value = compute()
    if path:
        with suppress(BenchError, OSError):
            write_json(path, as_json(value))
            _remove_oldest(path.parent)
    return value


def _named(files: Confined, names: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    for name in names:
        with suppress(FileNotFoundError), files.opened(name) as descriptor:
            yield name, os.fstat(descriptor)


def _state(root: Path, files: Iterable[tuple[str, os.stat_result]], settled_s: float) -> bytes | None:
    """A digest that changes with every file. None: one changed so recently that its next change might not
    show.

    Whoever writes to a file can set its time of modification, but not that of the change of its inode.
    """
    digest, newest = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")), 0
    for name, status in sorted(files):
        newest = max(newest, status.st_ctime_ns)
        about = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        digest.update(f"\0{name}\0{about}".encode())
    return None if newest > time.time_ns() - settled_s * 10**9 else digest.digest()


@cache
def _state_of_code(folder: Path) -> bytes | None:
    """The state of this installation and of what computes with it, as this process has loaded them."""
    state = _state(folder, ((str(path), path.stat()) for path in folder.rglob("*.py")), _LOADED_S)
    used = [sys.version, *map(metadata.version, ("numpy", "duckdb", "msgspec"))]
    return state and state + repr(used).encode()


@cache
def _remove_oldest(folder: Path) -> None:
    """Looks at all of them, so it does so once in a process. What has another name is not ours."""
    files = sorted((path.stat().st_mtime_ns, path) for path in folder.glob(f"{'?' * 64}.json"))
    for _written, path in files[:-_MOST]:
        path.unlink()
