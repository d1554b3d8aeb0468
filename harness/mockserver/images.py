"""Images of a request: read, known by what they hold, and put into the prompt as so many tokens."""

import hashlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from harness.mockserver.recently_used import RecentlyUsed

_FETCH_S = 5.0
_MOST_BYTES = 64 << 20


class ImageError(ValueError):
    """Refused; the message is for the client."""


class ImageCache:
    """Images whose encoding is kept: the last `capacity` that were asked for."""

    def __init__(self, capacity: int) -> None:
        self._encoded = RecentlyUsed(capacity)
        self.queries = self.hits = 0

    def claim(self, images: Sequence[str]) -> int:
        """Returns how many of them must be encoded; all are held from now on."""
        hits = sum(map(self._encoded.claim, images))
        self.queries += len(images)
        self.hits += hits
        return len(images) - hits


def as_text(messages: object, chars: int) -> tuple[object, tuple[str, ...]]:
    """The messages with a text of so many characters in the place of each image, and the images' sums.

    Equal images are equal text. Fetching one holds up all else for a moment. Raises ImageError.
    """
    found: list[str] = []

    def part(given: Any) -> Any:
        url = _url(given)
        if not url:
            return given
        found.append(hashlib.sha256(_read(url)).hexdigest())
        return {"type": "text", "text": (found[-1] * (chars // len(found[-1]) + 1))[:chars]}

    def message(given: Any) -> Any:
        content = given.get("content") if isinstance(given, Mapping) else None
        return {**given, "content": [part(each) for each in content]} if isinstance(content, list) else given

    if isinstance(messages, list):
        messages = [message(each) for each in messages]
    return messages, tuple(found)


def _url(part: Any) -> str:
    """Returns the address of an image, in any of the three APIs; "" of another part."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return url
        case {"type": "input_image", "image_url": str(url)}:
            return url
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return url
        case {"type": "image", "source": {"media_type": str(media_type), "data": str(data)}}:
            return f"data:{media_type};base64,{data}"
        case {"type": "image_url" | "input_image" | "image"}:
            raise ImageError("an image has no address and no data")
    return ""


def _read(url: str) -> bytes:
    head, coded, data = url.partition(";base64,")
    if head.startswith("data:image/") and coded:
        try:
            return b64decode(data, validate=True)
        except ValueError as error:
            raise ImageError(f"the image is not base64: {error}") from error
    if not url.startswith("http://127.0.0.1:"):
        raise ImageError("an image is a data URL of an image, or on http://127.0.0.1")
    from urllib.request import ProxyHandler, build_opener  # a tenth of the server's start, for images alone

    try:
        with build_opener(ProxyHandler({})).open(url, timeout=_FETCH_S) as answer:
            body: bytes = answer.read(_MOST_BYTES)
            return body
    except OSError as error:
        raise ImageError(f"the image cannot be fetched: {error}") from error
