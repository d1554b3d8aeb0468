"""An answer within the limits, without our credentials in it, or the reason that there is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from harness.errors import SetupError
from harness.untrusted import BadDocumentError, Secrets, inert, one_line, read_document

_SHOWN_CHARS = 300
REFUSALS = (401, 403)  # of a key


class NoAnswer(Enum):
    LATE = auto()  # not whole within the time
    UNREADABLE = auto()  # not HTTP, damaged, or longer than the limits allow
    LOST = auto()  # no connection, or one that broke


class NoAnswerError(SetupError):
    def __init__(self, kind: NoAnswer, what: str, *, where: str, hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.kind = kind


class StatusError(SetupError):
    """The server answers, but with a status that is no success."""

    def __init__(self, status: int, what: str, *, where: str, hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    url: str
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes  # decompressed; as the server sent it, so not to be shown or kept
    pieces: tuple[tuple[float, int], ...]  # time.monotonic() of each arrival and the body's length then
    secrets: Secrets = field(default_factory=Secrets)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def missing(self) -> bool:
        return self.status == 404

    @property
    def refuses_key(self) -> bool:
        return self.status in REFUSALS

    @property
    def text(self) -> str:
        return self.secrets.hidden(inert(self.body.decode("utf-8", "replace")))

    @property
    def figures(self) -> str:
        """The raw text, for parsers that take nothing but numbers from it."""
        return self.body.decode("utf-8", "replace")

    @property
    def said(self) -> str:
        """The beginning, for a message."""
        if 300 <= self.status < 400:
            return (
                f"a redirect to {self.line(self.headers.get('location', 'nowhere'))}, which is not followed"
            )
        begins = self.line(self.body[: 16 * _SHOWN_CHARS].decode("utf-8", "replace"))
        return begins or ("" if self.ok else "no text")

    def document(self) -> Any:
        """The body as JSON, credentials removed. Raises BadDocumentError."""
        return read_document(self.body, self.secrets.hidden)

    def document_or_none(self) -> Any:
        try:
            return self.document()
        except BadDocumentError:
            return None

    def line(self, text: str) -> str:
        """Words of it for a message: one inert line."""
        return one_line(self.secrets.hidden(text), _SHOWN_CHARS)
