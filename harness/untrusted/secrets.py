"""Credentials kept out of what servers say: some repeat the request's headers in their answers."""

import base64
import html
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

_SHORTEST = 6  # characters: a shorter key ("none", "EMPTY") is a word that answers may well hold


class Secrets:
    """Finds the given credentials in any casing and in the usual encodings."""

    def __init__(self, credentials: Iterable[str] = ()) -> None:
        spellings = {form.lower() for one in credentials if len(one) >= _SHORTEST for form in _spellings(one)}
        self._forms = tuple(sorted(spellings, key=len, reverse=True))
        self._pattern = re.compile("|".join(map(re.escape, self._forms)), re.IGNORECASE)

    def hidden(self, text: str) -> str:
        """With as many asterisks in their place, so that lengths of texts and of their parts stay true."""
        lowered = text.lower()
        if not any(
            form in lowered for form in self._forms
        ):  # far quicker than the pattern, and nearly always
            return text
        return self._pattern.sub(lambda match: "*" * len(match[0]), text)


def _spellings(credential: str) -> Iterator[str]:
    data = credential.encode("utf-8", "replace")
    yield credential
    yield quote(credential, safe="")
    yield "".join(f"%{byte:02x}" for byte in data)
    yield "".join(f"\\u{ord(char):04x}" for char in credential)
    yield html.escape(credential)
    yield "".join(f"&#{ord(char)};" for char in credential)
    yield "".join(f"&#x{ord(char):x};" for char in credential)
    yield data.hex()
    for lead in range(3):  # inside a longer text in base64, wherever it begins: what only it determines
        coded = base64.b64encode(b"\0" * lead + data).decode().rstrip("=")
        sure = coded[-(-8 * lead // 6) : (lead + len(data)) * 8 // 6]
        yield from (sure, sure.replace("+", "-").replace("/", "_"))
