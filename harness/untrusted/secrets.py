"""Credentials kept out of what servers say: some repeat the request's headers in their answers.

A text is decoded and reduced to its letters and digits before it is searched, so how a credential was spelled
matters little: its own casing and punctuation, what stands between its characters, and escapes of escapes go.
SECURITY.md says which spellings stay.
"""

import base64
import html
import re
from collections.abc import Iterable, Iterator

_SHORTEST = 6  # characters: a shorter key ("none", "EMPTY") is a word that answers may well hold
_SURE = 10  # letters and digits that no sentence holds by chance where its spaces are left out
_DECODED = 3  # times: a percent sign is often escaped itself, in JSON in a log
_ESCAPE = re.compile(
    r"%[0-9a-f]{2}"
    r"|&(?:\#x[0-9a-f]{1,6}|\#[0-9]{1,7}|[a-z]{2,8});?"
    r"|(?<!\\)\\++(?:u[0-9a-f]{4}|x[0-9a-f]{2}|[nrt/\"])",
    re.IGNORECASE,
)
_LETTER = re.compile("[0-9A-Za-z]")
_LOWER = bytes(range(256)).lower()
_DROPPED = bytes(byte for byte in range(256) if not chr(byte).isascii() or not chr(byte).isalnum())

_Span = tuple[int, int]


class Secrets:
    """Finds the given credentials as they are, encoded, escaped, and with anything between characters."""

    def __init__(self, credentials: Iterable[str] = ()) -> None:
        known = [secret for secret in credentials if len(secret) >= _SHORTEST]
        written = {
            form for secret in known for form in (secret, secret.encode("utf-8", "replace").decode("latin-1"))
        }
        self._exact = [re.compile(re.escape(secret), re.IGNORECASE) for secret in written]
        self._lowered = [secret.lower() for secret in written]
        reduced = {_reduced(form) for secret in known for form in _encodings(secret)}
        reduced |= {form for secret in known if len(form := _reduced(secret)) >= _SURE}
        self._needles = sorted(
            (secret for secret in reduced if len(secret) >= _SHORTEST), key=len, reverse=True
        )
        self._reduced = re.compile(b"|".join(self._needles))

    def hidden(self, text: str) -> str:
        """The text with as many asterisks in the place of each secret, so that lengths of texts and their
        parts stay true."""
        if not self._lowered or not any(map(self._holds, _decodings(text))):
            return text  # nearly always, and far quicker than to look for a place
        masked = list(text)
        for start, end in self._places(text):
            masked[start:end] = "*" * (end - start)
        return "".join(masked)

    def _holds(self, text: str) -> bool:
        reduced, lowered = _reduced(text), text.lower()
        return any(form in reduced for form in self._needles) or any(
            form in lowered for form in self._lowered
        )

    def _places(self, text: str) -> Iterator[_Span]:
        """Spans of secrets in `text`, in any of its decodings."""
        spans: list[_Span] = [(index, index + 1) for index in range(len(text))]
        before: str | None = None
        for decoded in _decodings(text):
            if before is not None:
                spans = _spans_decoded(before, spans)
            for pattern in self._exact:
                for found in pattern.finditer(decoded):
                    yield spans[found.start()][0], spans[found.end() - 1][1]
            letters = [letter.start() for letter in _LETTER.finditer(decoded)]
            for match in self._reduced.finditer(_reduced(decoded)) if self._needles else ():
                yield spans[letters[match.start()]][0], spans[letters[match.end() - 1]][1]
            before = decoded


def _reduced(text: str) -> bytes:
    """ASCII letters and digits in lower case."""
    return text.encode("utf-8", "surrogatepass").translate(_LOWER, _DROPPED)


def _decodings(text: str) -> Iterator[str]:
    """The text, and what its escapes stand for, and what theirs do."""
    yield text
    for _ in range(_DECODED):
        if not ("%" in text or "&" in text or "\\" in text):
            return
        decoded = _ESCAPE.sub(_meant, text)
        if decoded == text:
            return
        yield (text := decoded)


def _meant(escape: re.Match[str]) -> str:
    """The character that an escape stands for; for a percent sign one byte, as the character of that
    number.
    """
    text = escape[0].lower()
    if text[0] == "%":
        return chr(int(text[1:], 16))
    if text[0] == "&":
        return html.unescape(text)
    text = text.lstrip("\\")
    return chr(int(text[1:], 16)) if text[0] in "ux" else "/" if text[0] == "/" else " "


def _spans_decoded(text: str, spans: list[_Span]) -> list[_Span]:
    """The span that each character of the text decoded once comes from."""
    found, at = list[_Span](), 0
    for escape in _ESCAPE.finditer(text):
        found += spans[at : escape.start()]
        found += [(spans[escape.start()][0], spans[escape.end() - 1][1])] * len(_meant(escape))
        at = escape.end()
    return found + spans[at:]


def _encodings(credential: str) -> Iterator[str]:
    data = credential.encode("utf-8", "replace")
    yield data.hex()
    for encode, bits, group in ((base64.b64encode, 6, 3), (base64.b32encode, 5, 5)):
        for lead in range(group):  # inside a longer text, wherever it begins: what only it determines
            coded = encode(b"\0" * lead + data).decode()
            yield coded[-(-8 * lead // bits) : (lead + len(data)) * 8 // bits]
