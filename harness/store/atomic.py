"""Files appear whole or not at all, and a full disk says so."""

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import StorageError

PARTIAL = ".partial"


def write_bytes(path: Path, data: bytes) -> None:
    """Temporary file, fsync, rename. Raises StorageError when the disk is full or not writable."""
    partial = path.with_name(f".{path.name}{PARTIAL}")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise storage_error(error, path) from error


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    text = json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def storage_error(error: OSError | ValueError, path: Path) -> StorageError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            "no space left on the disk",
            where=str(path),
            hint="free space or choose another folder with --out; cells already written are kept",
        )
    return StorageError(
        f"cannot be written: {getattr(error, 'strerror', None) or error}",
        where=str(path),
        hint="choose another folder with --out",
    )


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
