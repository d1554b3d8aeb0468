"""Documents outside run folders, such as those in the cache, that appear whole or not at all."""

import json
import math
from pathlib import Path
from typing import Any

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
    text = json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """numpy scalars and arrays to JSON; a number that is not finite is null: it was not measured."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
