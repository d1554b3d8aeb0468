"""Documents outside run folders, such as those in the cache, that appear whole or not at all."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.host import paths
from harness.store.confined import Confined, storage_error


def write_bytes(path: Path, data: bytes) -> None:
    """Creates the folder too. The data are on the disk when it returns. Raises StorageError."""
    try:
        paths.made(path.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise storage_error(error, path) from error
    Confined(path.parent).write(path.name, data)


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Takes numpy scalars and arrays too; a number that is not finite is null: it was not measured."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=1) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
