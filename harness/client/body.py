"""The body of an answer, decompressed within limits."""

import time
import zlib
from collections.abc import Iterable, Iterator

from harness.client.limits import Account, LimitError
from harness.untrusted import one_line

_CODINGS = ("gzip", "x-gzip", "deflate")


def read_body(
    parts: Iterable[bytes], coding: str, account: Account
) -> tuple[bytes, tuple[tuple[float, int], ...]]:
    """The whole body, and time.monotonic() of each arrival with the body's length then. Raises LimitError.

    `coding`: the answer's content-encoding.
    """
    most_bytes = account.limits.body_bytes
    whole, pieces = bytearray(), []
    for part in _unpacked(parts, coding.strip().lower(), most_bytes):
        whole += part
        pieces.append((time.monotonic(), len(whole)))
        if len(whole) > most_bytes:
            raise LimitError(account.long_body)
        account.left_s(None)  # what the parser held already is read without waiting
    return bytes(whole), tuple(pieces)


def _unpacked(parts: Iterable[bytes], coding: str, most_bytes: int) -> Iterator[bytes]:
    """Decompressed parts, none longer than the limit whatever the ratio."""
    if coding in ("", "identity"):
        yield from parts
        return
    if coding not in _CODINGS:
        raise LimitError(f"the answer is in the content-encoding {one_line(coding, 30)!r}, not asked for")
    inflate: zlib._Decompress | None = None
    try:
        for part in parts:
            left = part
            while left:
                if inflate is None or inflate.eof:  # gzip may have several members, and zeros behind
                    if inflate is not None and not (left := left.lstrip(b"\0")):
                        break
                    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
                data = inflate.decompress(left, most_bytes)
                if inflate.unconsumed_tail:
                    raise LimitError(f"the answer is longer than {most_bytes} bytes once decompressed")
                left = inflate.unused_data
                yield data
    except zlib.error as error:
        raise LimitError(f"the compressed answer is damaged: {error}") from None
    if inflate is not None and not inflate.eof:
        raise LimitError("the compressed answer is damaged: it ends early")
