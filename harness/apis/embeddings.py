"""OpenAI Embeddings: `/v1/embeddings`. A request holds several texts; the answer is a vector for each."""

import sys
from array import array
from base64 import b64decode
from collections.abc import Sequence
from math import isfinite

from harness.apis.api import Api, Fields, Message
from harness.apis.payload import (
    UNCOUNTED,
    Document,
    Payload,
    by_place,
    items,
    mapping,
    reported_usage,
    whole_prompt,
)
from harness.records.event_kind import EventKind


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    """Each message is one text."""
    return {"input": [message["content"] for message in messages]}


def read(document: Document) -> Payload:
    entries = items(document.get("data"))
    usage = mapping(document.get("usage"))
    _, cached, *_ = reported_usage(usage, "prompt_tokens", "completion_tokens", UNCOUNTED)
    try:
        vectors = tuple(vector(entry.get("embedding")) for entry in by_place(entries, "vectors"))
        check(vectors)
    except (TypeError, ValueError, OverflowError) as error:
        return Payload(EventKind.OTHER, malformed=f"not embeddings: {error}")
    return Payload(EventKind.VALUES, "", "", whole_prompt(usage), cached, values=vectors)


def vector(value: object) -> "array[float]":
    """Numbers, or base64 of little-endian 32-bit ones. ValueError or TypeError for anything else."""
    if isinstance(value, str):
        numbers = array("f")
        numbers.frombytes(b64decode(value, validate=True))
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers
    if not isinstance(value, list):
        raise TypeError("a vector is neither a list of numbers nor base64")
    return array("f", value)


def check(vectors: Sequence["array[float]"]) -> None:
    """Raises ValueError for vectors that no model can have meant."""
    if not vectors:
        raise ValueError("the answer holds no vector")
    if len({len(vector) for vector in vectors}) > 1:
        raise ValueError("the vectors of one answer have different lengths")
    for index, vector in enumerate(vectors):
        if not isfinite(sum(vector)):
            raise ValueError(f"vector {index} holds a number that is not finite")
        if not any(vector):
            raise ValueError(f"vector {index} is empty, or all zero")
    if len(vectors) > 1 and all(vector == vectors[0] for vector in vectors):
        raise ValueError(f"all {len(vectors)} vectors are equal")


EMBEDDINGS = Api(
    name="embeddings",
    title="Embeddings",
    path="/v1/embeddings",
    body=_body,
    read=read,
    gives="vectors",
    templated=False,
)
