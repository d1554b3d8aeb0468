"""`/v1/embeddings` and `/v1/rerank`: answers that come whole, and how engines differ in them."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import shake_128
from math import exp, nan, sqrt
from struct import pack
from typing import Literal

from harness.mockserver.script import Script, Then, Write

Garbage = Literal["", "wrong-values", "nan-values"]
_SIZE = 384  # numbers of a vector


class ValuesError(ValueError):
    """Refused; the message is for the client."""


@dataclass(frozen=True, slots=True)
class VectorStyle:
    """`/v1/embeddings`."""

    shortens: Literal["refused", "ignored", "yes"] = "refused"  # what `dimensions` in a request does

    def texts(self, fields: Mapping[str, object]) -> tuple[tuple[str, ...], ...]:
        """Returns what the model reads, each apart."""
        asked = fields.get("dimensions")
        if self.shortens == "refused" and asked is not None:
            raise ValuesError("Model does not support matryoshka representation, changing output dimensions")
        if self.shortens == "yes" and isinstance(asked, int) and not 1 <= asked <= _SIZE:
            raise ValuesError(f"dimensions must be 1 to {_SIZE}")
        given = fields.get("input")
        return tuple((text,) for text in _strings([given] if isinstance(given, str) else given, "input"))

    def document(
        self, texts: Sequence[tuple[str, ...]], fields: Mapping[str, object], wrong: Garbage
    ) -> object:
        asked = fields.get("dimensions")
        size = asked if self.shortens == "yes" and isinstance(asked, int) else _SIZE
        vectors = [_vector(text, size, wrong) for (text,) in texts]
        encode = _base64 if fields.get("encoding_format") == "base64" else list
        data = [
            {"object": "embedding", "index": index, "embedding": encode(vector)}
            for index, vector in enumerate(vectors)
        ]
        return {"object": "list", "data": data}


@dataclass(frozen=True, slots=True)
class RankStyle:
    """`/v1/rerank`. Results come with the best first."""

    bounded: bool = False  # scores from 0 to 1; else the model's own
    key: Literal["relevance_score", "score"] = "relevance_score"
    bare: bool = False  # the list of results alone, and no usage

    def texts(self, fields: Mapping[str, object]) -> tuple[tuple[str, ...], ...]:
        """The query with each document."""
        (query,) = _strings([fields.get("query")], "query")
        return tuple((query, text) for text in _strings(fields.get("documents"), "documents"))

    def document(
        self, texts: Sequence[tuple[str, ...]], fields: Mapping[str, object], wrong: Garbage
    ) -> object:
        scores = [_score("\n".join(pair), wrong) for pair in texts]
        if self.bounded:
            scores = [1 / (1 + exp(-score)) for score in scores]
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        results = [{"index": index, self.key: scores[index]} for index in order]
        return results if self.bare else {"results": results}


ValuesStyle = VectorStyle | RankStyle


@dataclass(frozen=True, slots=True)
class Values:
    """The texts of one request, and their values: vectors or scores."""

    style: ValuesStyle
    texts: tuple[tuple[str, ...], ...]
    fields: Mapping[str, object] = field(default_factory=dict)

    def body(self, script: Script, model: str, wrong: Garbage) -> Iterator[Write]:
        """Whole, when the last text has been read."""
        (due_ns,) = script.dues_ns
        document = self.style.document(self.texts, self.fields, wrong)
        tokens = script.prompt_tokens
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        content = {"model": model, **document, "usage": usage} if isinstance(document, dict) else document
        yield Write(due_ns, json.dumps(content).encode(), 1, 1, Then.END)


def _strings(given: object, name: str) -> list[str]:
    if isinstance(given, list) and given and all(isinstance(text, str) for text in given):
        return given
    raise ValuesError(f"{name} must be a text, or a list of texts that is not empty")


def _vector(text: str, size: int, wrong: Garbage) -> list[float]:
    """Returns a vector of length 1, the same for the same text; `wrong`: as another model would have it."""
    numbers = [byte - 96.0 for byte in shake_128(text.encode()).digest(size)]
    length = sqrt(sum(number * number for number in numbers))
    numbers = [number / length for number in numbers]
    if wrong == "nan-values":
        numbers[0] = nan
    return numbers[::-1] if wrong == "wrong-values" else numbers


def _score(text: str, wrong: Garbage) -> float:
    score = int.from_bytes(shake_128(text.encode()).digest(4), "big") / 2**28 - 8
    if wrong == "nan-values":
        return nan
    return -score if wrong == "wrong-values" else score


def _base64(vector: Sequence[float]) -> str:
    return b64encode(pack(f"<{len(vector)}f", *vector)).decode()
