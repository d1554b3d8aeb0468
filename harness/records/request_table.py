"""The requests of one cell, without their texts: kept with the records to judge answers by.

Prompts are left out, because a seed makes them again.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from msgspec import convert
from numpy.typing import NDArray

# Kinds of requests that figures compare with the others of a cell.
BASE = "base"  # names no adapter
FREE = "free"  # the engine was not given its shape
ALONE, BESIDE, SETTLING, HEAVY = "alone", "beside", "settling", "heavy"  # of a victim probe

Check = Literal["label", "json_schema", "json_object", "regex", "choice", "tool_call"]


@dataclass(frozen=True, slots=True)
class Expected:
    """What makes an answer right.

    `value` by check. label: the texts, and the right one. json_schema: the schema. json_object: None. regex:
    the pattern. choice: the texts. tool_call: the schemas of the arguments, by the tools' names.
    """

    check: Check
    value: Any = None
    name: str = ""  # under which right and wrong answers are counted


class _Label(TypedDict):
    label: str
    labels: list[str]


_VALUES = {"label": _Label, "regex": str, "choice": list[str], "tool_call": dict[str, Any]}


class Part(NamedTuple):
    """A segment of a prompt that other prompts may have too: equal ids are equal tokens."""

    id: int
    tokens: int


# Numbers of a request; -1: it has none. `content_tokens`: of its own new messages, without the chat template.
# `at_ns`: in the time of its trace. `expected`: position in `RequestTable.expectations`. `items`: texts to
# embed, or documents to rank. `image_bytes`: of all its images, as files. `audio_ms`: of its recording.
# `tool_ns` and `think_ns`: waits for tools and for a person before a call of a recorded session. The prompt
# of such a call begins with the first `kept` tokens of the prompt of the request `base` places earlier.
NUMBERS = (
    *("max_tokens", "content_tokens", "session", "turn", "at_ns", "expected", "items"),
    *("tool_ns", "think_ns", "base", "kept"),
    *("images", "image_bytes", "audio_ms"),
)
# Distances back to the requests that a call waits for; 0 is the start of its session.
After = tuple[int, ...]
PREVIOUS: After = (1,)


@dataclass(frozen=True, slots=True)
class RequestTable:
    """One entry per request, in `seq` order."""

    numbers: NDArray[np.void]  # a field per name of NUMBERS
    kinds: Sequence[str]  # class of each request, which also gets statistics of its own; "": none
    shared: Sequence[tuple[Part, ...]]  # how its content begins, where others may begin alike
    expectations: Sequence[Expected]
    after: Sequence[After] = ()  # of sessions that are trees; (): each turn waits for the one before it

    def __len__(self) -> int:
        return len(self.numbers)

    def kinds_of(self, seqs: NDArray[np.int32]) -> NDArray[np.object_]:
        return np.array(self.kinds, object)[seqs]

    def items(self) -> NDArray[np.int32] | None:
        """Number of vectors or scores that each answer must have; None if answers are text."""
        counts = self.numbers["items"].astype(np.int32)
        return counts if (counts >= 0).any() else None

    def has_sessions(self) -> bool:
        return bool((self.numbers["session"] >= 0).any())

    def has_calls(self) -> bool:
        """Whether sessions were recorded: trees of calls with waits between them."""
        return bool((self.numbers["tool_ns"] >= 0).any())

    def waits_ns(self) -> NDArray[np.int64]:
        """Waits for tools and for a person before each request."""
        waits: NDArray[np.int64] = np.maximum(self.numbers["tool_ns"], 0)
        waits += np.maximum(self.numbers["think_ns"], 0)
        return waits

    def sessions(self) -> NDArray[np.int64]:
        """A number for each request: equal for turns of one chat, unique for requests of none."""
        ids = self.numbers["session"]
        return np.where(ids >= 0, ids, -1 - np.arange(len(ids)))

    @classmethod
    def of(
        cls,
        rows: Iterable[tuple[Sequence[int], str, tuple[Part, ...], *tuple[After, ...]]],
        expectations: Sequence[Expected],
    ) -> "RequestTable":
        """Builds the table from rows of numbers in the order of NUMBERS, kind, shared, and `after`.

        Numbers missing at the end of a row are -1; without `after`, a request waits for the turn before it.
        Iterating over `rows` may add to `expectations`.
        """
        numbers, kinds, shared, after = array("q"), [], [], []
        for row in rows:
            numbers.extend(row[0])
            numbers.extend([-1] * (len(NUMBERS) - len(row[0])))
            kinds.append(row[1])
            shared.append(row[2])
            after.append(row[3] if len(row) > 3 else PREVIOUS)
        numbered = np.frombuffer(numbers, np.dtype([(name, "<i8") for name in NUMBERS]))
        trees = any(waits is not PREVIOUS for waits in after)
        return cls(numbered, kinds, shared, expectations, after if trees else ())

    def as_json(self) -> Iterable[dict[str, object]]:
        """Yields a head, then a line per request, without values that are -1 or empty."""
        yield {"expectations": [asdict(expected) for expected in self.expectations]}
        after = self.after or repeat(PREVIOUS, len(self))
        for numbers, kind, shared, waits in zip(
            self.numbers.tolist(), self.kinds, self.shared, after, strict=True
        ):
            line: dict[str, object] = {n: v for n, v in zip(NUMBERS, numbers, strict=True) if v != -1}
            if kind:
                line["kind"] = kind
            if shared:
                line["shared"] = shared
            if waits != PREVIOUS:
                line["after"] = waits
            yield line

    @classmethod
    def from_json(cls, lines: Iterable[Mapping[str, Any]]) -> "RequestTable":
        """Reads what `as_json` wrote.

        Raises KeyError, TypeError, ValueError, OverflowError or StopIteration for anything else.
        """
        rest = iter(lines)
        expectations = [convert(expected, Expected) for expected in dict(next(rest))["expectations"]]
        for expected in expectations:
            convert(expected.value, _VALUES.get(expected.check, object))
        known: dict[object, Any] = {}  # kinds and prefixes are few, and each row would have its own copy
        rows = (
            (
                [int(line.get(name, -1)) for name in NUMBERS],
                known.setdefault(kind := str(line.get("kind", "")), kind),
                known.setdefault(path := tuple(Part(*part) for part in line.get("shared", ())), path),
                *((tuple(map(int, line["after"])),) if "after" in line else ()),
            )
            for line in map(dict, rest)
        )
        table = cls.of(rows, expectations)
        if table.numbers["expected"].max(initial=-1) >= len(expectations):
            raise ValueError("expected: nothing that is expected of an answer")
        return table
