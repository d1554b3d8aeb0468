"""Faults on demand: which requests one strikes, and what it does to the writes of an answer."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

from harness.mockserver.numerals import real_number, whole_number
from harness.mockserver.script import VOCABULARIES, Then, Write
from harness.mockserver.values import Garbage
from harness.mockserver.wire import answer, error_answer

NS_PER_S = 1_000_000_000
_MODEL = re.compile(rb'"model": ?"')

# Kinds that answer instead of the model, by status.
REFUSALS = {"401": 401, "429": 429, "503": 503, "html-500": 500}
# Kinds that strike the whole server while it starts; they take no selector.
START_KINDS = ("loading", "refused", "die-loading")
BODY_KINDS = ("error-event", "malformed")
WIRE_KINDS = ("stall", "reset", "truncation", "bad-chunk", "die", "slow-headers")
# Vectors and scores: of another model, or with NaN among them.
VALUE_KINDS: tuple[Garbage, ...] = ("wrong-values", "nan-values")
# Answers that look whole and are worth nothing: the text of an error, one text for every prompt, one token
# over and over, nothing behind the first token, or the prompt.
TEXT_KINDS = ("error-text", "same-text", "one-token", "no-text", "echo")
KINDS = (
    *(*REFUSALS, *START_KINDS, *BODY_KINDS, *WIRE_KINDS),
    *("wrong-usage", "other-model", *VALUE_KINDS, *TEXT_KINDS),
    *("odd-finish", "not-streamed"),  # a finish reason of its own; in one piece, and not as a stream
)
ODD_FINISH = "halted"
ERROR_TEXT = "CUDA out of memory. Tried to allocate 2.00 GiB."


@dataclass(frozen=True, slots=True)
class Fault:
    """`KIND[:every=N|:p=SHARE|:at=K[:times=N]][:after=TOKENS][:for=SECONDS]`; no selector: it strikes all.

    Requests count from 0 since the start or the last /truth/reset. `after` tokens are written
    whole before the fault; an answer with no more tokens than that is spared. `for` is how long a
    stall, slow headers, loading or refusing lasts, and the Retry-After of a 429 or 503.
    """

    kind: str
    every: int | None = None
    p: float | None = None
    at: int | None = None
    times: int = 1  # so many in a row, from `at` on
    after: int = 0
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError says what is wrong with the text."""
        kind, *settings = text.split(":")
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a fault: {', '.join(KINDS)}")
        values = dict(setting.partition("=")[::2] for setting in settings)
        if unknown := values.keys() - {"every", "p", "at", "times", "after", "for"}:
            known = "every, p, at, times, after, for"
            raise ValueError(f"{text!r}: {', '.join(sorted(unknown))} is not one of {known}")
        selectors = values.keys() & {"every", "p", "at"}
        if len(selectors) > 1:
            raise ValueError(f"{text!r}: choose one of every, p and at")
        if "times" in values and "at" not in values:
            raise ValueError(f"{text!r}: times goes with at")
        if selectors and kind in START_KINDS:
            raise ValueError(f"{text!r}: {kind} strikes the whole server, not single requests")
        numbers = {name: real_number(value) for name, value in values.items()}
        if not all(0 <= number < math.inf for number in numbers.values()):
            raise ValueError(f"{text!r}: numbers must be finite and not negative")
        if numbers.get("every") == 0 or numbers.get("p", 0) > 1:
            raise ValueError(f"{text!r}: every must be at least 1, p at most 1")
        return cls(
            kind,
            every=whole_number(values["every"]) if "every" in values else None,
            p=numbers.get("p"),
            at=whole_number(values["at"]) if "at" in values else None,
            times=whole_number(values.get("times", "1")),
            after=whole_number(values.get("after", "0")),
            seconds=numbers.get("for"),
        )

    def strikes(self, number: int, rng: Random) -> bool:
        """`rng` is drawn from only where a probability asks for it."""
        if self.at is not None:
            return self.at <= number < self.at + self.times
        if self.every is not None:
            return number % self.every == self.every - 1
        return self.p is None or rng.random() < self.p

    def lasting_ns(self, default_s: float) -> int:
        return round((default_s if self.seconds is None else self.seconds) * NS_PER_S)


def garbage(fault: Fault | None) -> Garbage:
    """Returns what a fault does to vectors or scores."""
    return next((kind for kind in VALUE_KINDS if fault and fault.kind == kind), "")


def struck_words(fault: Fault, prompt: Sequence[str | int], tokens: int) -> tuple[str, ...]:
    """Returns the tokens of an answer, repeated where it has more of them; () for another kind of fault."""
    match fault.kind:
        case "same-text":
            return VOCABULARIES["ascii"]
        case "one-token":
            return ("!",)
        case "no-text":
            return ("Hi", *[""] * (tokens - 1))
        case "echo":
            return tuple(map(str, prompt))
    return ()


def refusal(fault: Fault) -> tuple[int, bytes] | None:
    """Status and whole answer of a kind that answers instead of the model; None: another kind."""
    status = REFUSALS.get(fault.kind)
    match status:
        case None:
            return None
        case 500:
            page = b"<html><body><h1>500 Internal Server Error</h1></body></html>"
            return status, answer(status, page, "text/html")
        case 429 | 503:
            seconds = 1 if fault.seconds is None else math.ceil(fault.seconds)
            return status, error_answer(status, "simulated overload", {"retry-after": seconds})
    return status, error_answer(status, "simulated refusal of the key")


def strike_body(fault: Fault, body: Iterator[Write], *, stream: bool) -> Iterator[Write]:
    """Faults in what the answer says, ahead of its framing: an error, broken JSON, another model."""
    if fault.kind == "error-event":
        payload = (
            '{"error": {"message": "simulated engine error", "type": "InternalServerError", "code": 500}}'
        )
    elif fault.kind == "malformed":
        payload = '{"choices": [{"index": 0, "delta": {"content": '
    elif fault.kind == "other-model":
        return _renamed(body, fault.after)
    else:
        return body
    data = (f"data: {payload}\n\ndata: [DONE]\n\n" if stream else payload).encode()
    return _ended(body, fault.after, lambda _: data, Then.END)


def strike_wire(fault: Fault, writes: Iterator[Write]) -> Iterator[Write]:
    """Faults of the connection and of the framing."""
    match fault.kind:
        case "reset":
            return _ended(writes, fault.after, lambda _: b"", Then.RESET)
        case "die":
            return _ended(writes, fault.after, lambda _: b"", Then.EXIT)
        case "truncation":
            return _ended(writes, fault.after, lambda data: data[: len(data) // 2], Then.CLOSE)
        case "bad-chunk":
            return _ended(writes, fault.after, lambda data: b"zz\r\n" + data, Then.CLOSE)
        case "stall" if fault.seconds is None:
            return _ended(writes, fault.after, lambda _: b"", Then.HANG)
        case "stall":
            return _stalled(writes, fault.after, fault.lasting_ns(0))
        case "slow-headers":
            delay_ns = fault.lasting_ns(default_s=1)
            return (write._replace(due_ns=max(write.due_ns, delay_ns)) for write in writes)
    return writes


def _ended(
    writes: Iterator[Write], after: int, change: Callable[[bytes], bytes], then: Then
) -> Iterator[Write]:
    """Ends with the write that would bring more than `after` tokens, its bytes changed."""
    tokens = 0
    for write in writes:
        tokens += write.tokens
        if tokens > after:
            yield Write(write.due_ns, change(write.data), then=then)
            return
        yield write


def _renamed(writes: Iterator[Write], after: int) -> Iterator[Write]:
    """Names another model from the write on that brings more than `after` tokens; 0: in all of them."""
    tokens = 0
    for write in writes:
        tokens += write.tokens
        other = tokens > after or not after
        yield write._replace(data=_MODEL.sub(rb"\g<0>other-", write.data)) if other else write


def _stalled(writes: Iterator[Write], after: int, delay_ns: int) -> Iterator[Write]:
    """Delays the write that would bring more than `after` tokens, and all that follow."""
    tokens = 0
    for write in writes:
        tokens += write.tokens
        yield write._replace(due_ns=write.due_ns + delay_ns) if tokens > after else write
