"""The pure core: which tokens an answer holds and when each is due. No clock, no sockets.

Offsets are nanoseconds from admission: from when the request had been received, or from when a
slot became free if it had to queue.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate, chain, repeat
from random import Random
from typing import NamedTuple, Self
from zlib import crc32

from harness.mockserver.numerals import real_number

NS_PER_MS = 1_000_000
MOST_MS = 1e15  # 30,000 years; an infinite number of nanoseconds is no whole one
MOST_SIGMA = 20.0  # of a lognormal distribution: e to the power of a hundred times more is no float


class Then(Enum):
    """What follows a write."""

    MORE = auto()
    END = auto()  # the answer is complete; the connection stays open if the client wants it
    CLOSE = auto()  # FIN although the answer is not complete
    RESET = auto()  # RST
    HANG = auto()  # nothing ever again; the connection stays open
    EXIT = auto()  # the server process ends with exit code 1


class Write(NamedTuple):
    """One send(). `events` and `tokens` count those that carry generated text."""

    due_ns: int
    data: bytes
    events: int = 0
    tokens: int = 0
    then: Then = Then.MORE


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of a time in milliseconds: `50`, `uniform:LOW:HIGH`, `exponential:MEAN` or
    `lognormal:MEDIAN:SIGMA`.
    """

    kind: str
    parameters: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError says what is wrong with the text."""
        kind, *rest = text.split(":")
        if not rest:
            kind, rest = "fixed", [kind]
        counts = {"fixed": 1, "uniform": 2, "exponential": 1, "lognormal": 2}
        if kind not in counts or len(rest) != counts[kind]:
            forms = "MS, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA"
            raise ValueError(f"{text!r} is not a distribution: {forms}")
        parameters = tuple(real_number(value) for value in rest)
        if not all(0 <= value < float("inf") for value in parameters):
            raise ValueError(f"{text!r}: times must be finite and not negative")
        if parameters[0] > MOST_MS or (kind == "uniform" and parameters[1] > MOST_MS):
            raise ValueError(f"{text!r}: a time is above {MOST_MS:g} ms")
        if kind == "uniform" and parameters[0] > parameters[1]:
            raise ValueError(f"{text!r}: LOW is above HIGH")
        if kind == "lognormal" and parameters[1] > MOST_SIGMA:
            raise ValueError(f"{text!r}: SIGMA is above {MOST_SIGMA:g}")
        return cls(kind, parameters)

    def draw_ns(self, rng: Random) -> int:
        match self.kind, self.parameters:
            case "uniform", (low, high):
                value = rng.uniform(low, high)
            case "exponential", (mean,):
                value = rng.expovariate(1 / mean) if mean else 0.0
            case "lognormal", (median, sigma):
                value = median * rng.lognormvariate(0, sigma)
            case _:
                value = self.parameters[0]
        return round(value * NS_PER_MS)

    def draws_ns(self, count: int, rng: Random) -> Iterator[int]:
        if self.kind == "fixed":
            return repeat(self.draw_ns(rng), count)
        return (self.draw_ns(rng) for _ in range(count))


@dataclass(frozen=True, slots=True)
class Script:
    """One answer before it is rendered."""

    tokens: int
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int
    dues_ns: Iterator[int]  # one per token, ascending; an iterator, so it can be consumed once
    words: tuple[str, ...] = ()  # the tokens' text, where it is not the vocabulary's
    first_word: int = 0  # of the vocabulary


def token_dues_ns(
    ttft: Distribution, gap: Distribution, prefill_ns: int, tokens: int, rng: Random
) -> Iterator[int]:
    """An absolute schedule: a token written late never delays the tokens after it."""
    first_ns = ttft.draw_ns(rng) + prefill_ns
    return accumulate(chain((first_ns,), gap.draws_ns(tokens - 1, rng)))


def output_tokens(
    limit: int, minimum: int, ignore_eos: bool, stop_after_tokens: int | None
) -> tuple[int, str]:
    """Returns how many tokens come out, and the finish reason."""
    if ignore_eos or stop_after_tokens is None:
        return limit, "length"
    wanted = max(stop_after_tokens, minimum)
    return (wanted, "stop") if wanted < limit else (limit, "length")


VOCABULARIES = {
    "ascii": tuple(f" {a}{b}{c}{d}" for a in "bdfg" for b in "aeio" for c in "klmn" for d in "aeiu"),
    # two to four bytes in UTF-8, and characters that JSON must escape
    "unicode": tuple(
        letter + word
        for letter in "bdfgklmn"
        for word in (" naïve", " 東京", " 🙂", ' "quoted"', "\n", " back\\slash", " Größe", " né\tant", " ok")
    ),
}


def first_word(question: str) -> int:
    """The place in a vocabulary where the answer to this question begins: equal questions get equal answers,
    and others other ones.
    """
    return crc32(question.encode()) & 0xFFFF


def text(vocabulary: str, start: int, stop: int) -> str:
    """The words `start` to `stop`: every answer speaks them in the same order, from its first word on."""
    words = VOCABULARIES[vocabulary]
    return "".join(words[index % len(words)] for index in range(start, stop))
