"""Rerank, as Jina and Cohere have it: `/v1/rerank`. A query with documents; the answer is a score for each.

Scores are kept in the order of the documents. Their scale is the engine's own: vLLM answers a probability,
llama.cpp and SGLang the raw logit, so only their order compares.
"""

from array import array
from collections.abc import Sequence
from math import isfinite
from typing import Any

from harness.apis.api import Api, Fields, Message
from harness.apis.payload import Document, Payload, by_place, items, mapping, whole_prompt
from harness.records.event_kind import EventKind


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    """The first message is the query, each other one a document."""
    query, *documents = (message["content"] for message in messages)
    return {"query": query, "documents": documents}


def read(document: Document) -> Payload:
    results = items(document.get("results"))
    try:
        scores = _scores(results)
    except (TypeError, ValueError, OverflowError) as error:
        return Payload(EventKind.OTHER, malformed=f"not a ranking: {error}")
    usage = document.get("usage") or mapping(document.get("meta")).get("tokens")  # Cohere has the latter
    return Payload(EventKind.VALUES, "", "", whole_prompt(mapping(usage)), values=(scores,))


def _scores(results: list[dict[str, Any]]) -> "array[float]":
    if not results:
        raise ValueError("the answer holds no score")
    scores = array("d", map(_score, by_place(results, "documents")))
    if not isfinite(sum(scores)):
        raise ValueError("a score is not finite")
    if len(scores) > 1 and min(scores) == max(scores):
        raise ValueError(f"all {len(scores)} scores are equal")
    return scores


def _score(result: Document) -> float:
    score = result.get("relevance_score", result.get("score"))
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise TypeError("a score is not a number")
    return float(score)


RERANK = Api(
    name="rerank",
    title="Rerank",
    path="/v1/rerank",
    body=_body,
    read=read,
    gives="scores",
    echoes=1,
    bare_list="results",
    templated=False,
)
