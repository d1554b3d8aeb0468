"""One chat request to a running server, and everything a client could see of the answer."""

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf

from harness.apis import CHAT, Api
from harness.apis.payload import error_message, items, mapping, usage_of
from harness.client.answer import Answer, NoAnswer, NoAnswerError
from harness.client.client import Client
from harness.client.limits import Limits
from harness.host.access import Access
from harness.load.sse import Parsed, event_data, parse_answer
from harness.records.layout import GENERATED, EventKind
from harness.untrusted import BadDocumentError, Secrets, inert, one_line, read_document

_ERROR_CHARS = 200
_MOST_BYTES = 4 << 20  # no answer to a probe comes near it


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer as the load would read it. Token counts are UNKNOWN where no usage block gives them."""

    status: int  # 0: there was no complete answer, or no request
    parsed: Parsed = field(default_factory=Parsed)
    documents: tuple[Mapping[str, object], ...] = ()  # of the events that are JSON objects
    error: str = ""
    lead_ms: float = 0.0  # from the first event to the first text
    text_s: tuple[float, ...] = ()  # when each event with text came, from asking, connecting included
    secrets: Secrets = field(default_factory=Secrets)
    none_came: NoAnswer | None = None  # of a request without a complete answer

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300 and not self.error

    @property
    def kinds(self) -> list[EventKind]:
        return list(map(EventKind, self.parsed.kinds))

    @property
    def text(self) -> str:
        """Leaves out reasoning and tool calls."""
        whole, ends = "".join(self.parsed.texts), accumulate(self.parsed.chars)
        spans = zip(self.kinds, self.parsed.chars, ends, strict=True)
        text = "".join(whole[end - chars : end] for kind, chars, end in spans if kind is EventKind.TEXT)
        return self.secrets.hidden(inert(text))

    @property
    def text_events(self) -> int:
        return sum(kind in GENERATED for kind, _ in _whole_events(self.parsed))

    @property
    def silent_events(self) -> int:
        """Tokens without text, such as special ones: empty events between others that usage has."""
        text = [index for index, kind in enumerate(self.kinds) if kind in GENERATED]
        silent = self.kinds[text[0] : text[-1]].count(EventKind.OTHER) if text else 0
        return silent if len(text) + silent <= self.count("output_tokens") else 0

    @property
    def ttft_s(self) -> float:
        """0: no text."""
        return self.text_s[0] if self.text_s else 0.0

    @property
    def answer_s(self) -> float:
        """Seconds to the last text."""
        return self.text_s[-1] if self.text_s else 0.0

    @property
    def gaps_s(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.text_s)]

    @property
    def tpot_s(self) -> float:
        """Seconds per token, by usage, or one token an event; 0 where there is one token at most."""
        gaps = max(self.count("output_tokens") - self.unseen_tokens, self.text_events) - 1
        return (self.answer_s - self.ttft_s) / gaps if gaps > 0 else 0.0

    @property
    def unseen_tokens(self) -> int:
        """Reasoning that the server counts and keeps to itself: it came before the first text."""
        thoughts = self.count("reasoning_tokens")
        shown = self.has(EventKind.REASONING) or self.text_events > self.count("output_tokens") - thoughts
        return 0 if shown else max(thoughts, 0)

    @property
    def first(self) -> str | None:
        """`role` where an event without text comes ahead of the first text."""
        for kind in self.kinds:
            if kind in GENERATED:
                return "text"
            if kind is EventKind.OTHER:
                return "role"
        return None

    @property
    def usage(self) -> str:
        """The event with the usage block: `last` is an event of its own, `finish` the one with the reason."""
        blocks = [document for document in self.documents if usage_of(document)]
        if not blocks:
            return "never"
        if len(blocks) > 2:
            return "each"
        return "finish" if all(event.get("choices") for event in blocks) else "last"

    def count(self, name: str) -> int:
        """`prompt_tokens`, `cached_tokens` or `output_tokens` as the last event that has it says."""
        return int(getattr(self.parsed, name))

    @property
    def finish_reason(self) -> str:
        return self.parsed.finish_reason

    def has(self, kind: EventKind) -> bool:
        return kind in self.kinds

    def reasoning_fields(self) -> set[str]:
        """Names of the fields that carried reasoning text; in other APIs than chat, whatever it was."""
        named = {
            name
            for document in self.documents
            for choice in items(document.get("choices"))
            for name, value in mapping(choice.get("delta")).items()
            if name.startswith("reasoning") and value
        }
        return named or ({"events of its own"} if self.has(EventKind.REASONING) else set())


@dataclass(slots=True)
class Line:
    """Line to one server. Safe to use from several threads."""

    url: str
    access: Access
    deadline: float  # time.monotonic()
    api: Api = CHAT
    requests: int = 0
    _client: Client = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        # A connection of its own for each: one kept alive may be closed by the server just then.
        self._client = Client("", self.access, keep_alive=False)

    def close(self) -> None:
        self._client.close()

    def count_request(self) -> None:
        """Counts one request, also where it goes another way than this line."""
        with self._lock:
            self.requests += 1

    def ask(self, body: bytes, most_s: float = inf) -> Seen:
        """Sends a request. Never raises for what the server does: no answer in time is an answer with an
        error.
        """
        left = min(self.deadline - time.monotonic(), most_s)
        if left <= 0:
            return Seen(0, error="not asked: the time for this probe is over")
        self.count_request()
        limits = Limits(total_s=left, wire_bytes=_MOST_BYTES, body_bytes=_MOST_BYTES)
        asked = time.monotonic()
        try:
            answer = self._client.ask("POST", self.url, content=body, headers=self.api.headers, limits=limits)
        except NoAnswerError as error:
            return Seen(0, error=f"no complete answer: {error.what}", none_came=error.kind)
        if not answer.ok:
            reply = error_message(answer.document_or_none()) or answer.said
            return Seen(answer.status, error=one_line(reply, _ERROR_CHARS))
        if not answer.body:
            return Seen(answer.status, error="an answer without a body")
        pieces = [(moment - asked, length) for moment, length in answer.pieces]
        return _read(answer, pieces, self.api)


def _read(answer: Answer, pieces: Sequence[tuple[float, int]], api: Api) -> Seen:
    """`pieces`: seconds since the request, and the body's length then."""
    content_type = answer.headers.get("content-type", "").lower().encode()
    parsed = parse_answer(answer.body, content_type, api, ended=True)
    lengths = [length for _, length in pieces]
    events = [
        (kind, pieces[bisect_left(lengths, end)][0])
        for kind, end in _whole_events(parsed)
        if kind != EventKind.COMMENT
    ]
    texts = [at_s for kind, at_s in events if kind in GENERATED]
    lead_ms = (texts[0] - events[0][1]) * 1e3 if texts else 0.0
    error = one_line(answer.secrets.hidden(parsed.error or parsed.malformed), _ERROR_CHARS)
    documents = tuple(_documents(answer, parsed))
    return Seen(answer.status, parsed, documents, error, lead_ms, tuple(texts), answer.secrets)


def _whole_events(parsed: Parsed) -> Iterator[tuple[int, int]]:
    """Yields the first kind of each event, and where the event ends."""
    ends = accumulate(parsed.sizes)
    return ((kind, end) for kind, end, size in zip(parsed.kinds, ends, parsed.sizes, strict=True) if size)


def _documents(answer: Answer, parsed: Parsed) -> Iterator[Mapping[str, object]]:
    """The events that are JSON objects."""
    for data in event_data(answer.body, parsed):
        try:
            document = read_document(data, answer.secrets.hidden)
        except BadDocumentError:
            continue
        if isinstance(document, dict):
            yield document
