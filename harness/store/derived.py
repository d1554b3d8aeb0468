"""Values that were computed of runs, kept in the user's cache: a run that has not changed gives them at once.

Nothing of it lies in the folders of runs. A stranger's folder brings no values along, a folder that is
read-only has them too, and all of it can be deleted at any time. A value is found by a digest of all that it
was made of: a change of the run or of the code leads to no value, and need not be noticed.
"""

import hashlib
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import BenchError
from harness.host import paths
from harness.model import Record, as_json, from_json
from harness.store.atomic import json_bytes, write_bytes
from harness.store.confined import Confined
from harness.untrusted import read_document

T = TypeVar("T", bound=Record)

_CODE = Path(__file__).parents[1]
_MOST = 10_000  # values of a file, the last used ones
_MOST_FILES = 100  # one for each folder of results and kind of value
# Two changes of a file within a tick of its file system's clock look like one: ticks take up to two seconds.
_TICK_NS = 3 * 10**9
_LOADED_NS = 60 * 10**9  # code that changed so recently may not be what this process has loaded


class Derived:
    """Values of one kind, of the runs under one folder.

    `of` computes what is not known, `write` keeps it. Two processes may do so at the same time: the values of
    the one that writes last stay.
    """

    def __init__(self, kind: str, results: Path) -> None:
        digest = hashlib.sha256(str(results.resolve()).encode("utf-8", "surrogateescape"))
        self._path = _folder() / f"{kind}-{digest.hexdigest()[:16]}.json"
        self._code = _state_of_code()
        self._known = self._read()
        self._more: dict[str, Any] = {}

    def of(self, files: Confined, kind: type[T], compute: Callable[[], T]) -> T:
        """The value of a run, which `compute` makes of its folder alone. Raises as `compute` does."""
        state = self._code and _state_of(files)
        if state and state in self._known:
            try:
                found = from_json(self._known[state], kind)
                self._known[state] = self._known.pop(state)  # the last to go
                return found
            except ValueError:
                pass  # somebody changed the file
        value = compute()
        if state:
            self._more[state] = as_json(value)
        return value

    def write(self) -> None:
        """Keeps what `of` had to compute. Where the cache cannot be written, nothing is kept."""
        if not self._more or _state_of_code() != self._code:
            return
        values = [*{**self._known, **self._more}.items()][-_MOST:]
        try:
            write_bytes(self._path, json_bytes({"code": self._code, "values": dict(values)}))
            files = sorted(_folder().glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            for old in files[:-_MOST_FILES]:
                old.unlink(missing_ok=True)
        except (BenchError, OSError):
            pass

    def _read(self) -> dict[str, Any]:
        try:
            document = read_document(Confined(self._path.parent).read(self._path.name))
        except (BenchError, OSError, ValueError):
            return {}
        match document:
            case {"code": str(code), "values": dict(values)} if code == self._code:
                return values
        return {}


def _folder() -> Path:
    return paths.cache_dir() / "derived"


def _state_of(files: Confined) -> str | None:
    """A digest that changes with every file of the folder. None: one changed so recently that its next change
    might not show.

    Whoever writes to a file can set its time of modification, but not that of the change of its inode.
    """
    digest, newest = hashlib.sha256(str(files.root.resolve()).encode("utf-8", "surrogateescape")), 0
    for name, status in sorted(files.walk(), key=lambda entry: entry[0]):
        newest = max(newest, status.st_ctime_ns)
        about = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        digest.update(f"\0{name}\0{about}".encode())
    return None if newest > time.time_ns() - _TICK_NS else digest.hexdigest()


def _state_of_code() -> str | None:
    """A digest of the code of this installation and of what computes with it; None: some of it is new."""
    digest = hashlib.sha256(repr((sys.version, platform.machine())).encode())
    try:
        for package in ("numpy", "duckdb", "msgspec"):
            digest.update(f"{package} {metadata.version(package)}\0".encode())
        newest = 0
        for path in sorted(_CODE.rglob("*.py")):
            newest = max(newest, path.stat().st_ctime_ns)
            digest.update(f"{path.relative_to(_CODE)}\0".encode() + path.read_bytes() + b"\0")
    except (metadata.PackageNotFoundError, OSError):
        return None
    return None if newest > time.time_ns() - _LOADED_NS else digest.hexdigest()
