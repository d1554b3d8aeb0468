"""A GGUF file's metadata without its weights: the vocabulary, for weights drawn elsewhere."""

import struct
from collections.abc import Callable
from io import BytesIO

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of each kind of value
_TEXT, _ARRAY = 8, 9


def vocabulary_of(file: bytes) -> bytes:
    """The same file with no tensor. Raises ValueError where it is no GGUF file."""
    magic, version, _, pairs = struct.unpack_from("<4sIQQ", file)
    if magic != b"GGUF":
        raise ValueError("not a GGUF file")
    source = BytesIO(file)
    source.seek(24)

    def number(form: str) -> int:
        return int(struct.unpack(form, source.read(struct.calcsize(form)))[0])

    for _ in range(pairs):
        source.read(number("<Q"))
        _skip(number("<I"), number, source)
    end = source.tell()
    padded = file[24:end] + b"\0" * (-end % 32)
    return struct.pack("<4sIQQ", magic, version, 0, pairs) + padded


def _skip(kind: int, number: Callable[[str], int], source: BytesIO) -> None:
    if kind == _TEXT:
        source.read(number("<Q"))
    elif kind == _ARRAY:
        inner, count = number("<I"), number("<Q")
        if inner in _SIZES:
            source.read(count * _SIZES[inner])
        else:
            for _ in range(count):
                _skip(inner, number, source)
    else:
        source.read(_SIZES[kind])
