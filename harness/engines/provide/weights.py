"""The weights of an engine, and check sums over them."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PIECE = re.compile(r"(.+)-\d{5}-of-(\d{5})\.gguf")
HUB_TOKEN = "HF_TOKEN"  # environment variable that engines which fetch weights themselves read


@dataclass(frozen=True, slots=True)
class Weights:
    """`model` is what the engine gets: a file, a folder, or a name in the model hub.

    `vision` is a second file, where the weights of what it makes of images lie apart.
    """

    model: str
    track: str
    quantisation: str
    sha256: str | None  # of the file, or over its pieces or the folder's files; None: the engine fetches them
    tokenizer_sha256: str | None  # None: inside the weights, or not here
    how: str
    source: str = ""  # where the facts about them were read
    vision: str | None = None

    @property
    def local(self) -> bool:
        return self.sha256 is not None


def is_piece(path: Path) -> bool:
    return _PIECE.fullmatch(path.name) is not None


def pieces(path: Path) -> list[Path]:
    """The files of a GGUF model that is split into several, by the path of any; else the file alone."""
    named = _PIECE.fullmatch(path.name)
    if named is None:
        return [path]
    found = ((file, _PIECE.fullmatch(file.name)) for file in path.parent.iterdir())
    return sorted(file for file, other in found if other is not None and other.groups() == named.groups())


def digest(path: Path) -> str:
    """sha256 of a file; of a folder and of a split file, over the names and sums of its files (hidden files
    are not weights)."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
    elif len(files := pieces(path)) == 1:
        return _sum_of(path)
    lines = [f"{_sum_of(file)}  {file.name}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _sum_of(file: Path) -> str:
    stat = file.stat()
    return _file_sum(file, stat.st_size, stat.st_mtime_ns)


@lru_cache
def _file_sum(path: Path, _size: int, _mtime_ns: int) -> str:
    """Remembered while the file is unchanged: a run opens an engine many times, and weights are large."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
