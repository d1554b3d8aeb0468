"""The weights of an engine, and check sums over them."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

HUB_TOKEN = "HF_TOKEN"  # environment variable that engines which fetch weights themselves read


@dataclass(frozen=True, slots=True)
class Weights:
    """`model` is what the engine gets: a file, a folder, or a name in the model hub.

    `vision` is a second file, where the weights of what it makes of images lie apart.
    """

    model: str
    track: str
    quantisation: str
    sha256: str | None  # of the file, or over the files of the folder; None: the engine fetches them itself
    tokenizer_sha256: str | None  # None: inside the weights, or not here
    how: str
    source: str = ""  # where the facts about them were read
    vision: str | None = None

    @property
    def local(self) -> bool:
        return self.sha256 is not None


def digest(path: Path) -> str:
    """sha256 of a file; of a folder, over its files' names and sums (hidden files are not weights)."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        lines = [f"{digest(file)}  {file.name}" for file in files]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
    stat = path.stat()
    return _file_sum(path, stat.st_size, stat.st_mtime_ns)


@lru_cache
def _file_sum(path: Path, _size: int, _mtime_ns: int) -> str:
    """Remembered while the file is unchanged: a run opens an engine many times, and weights are large."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
