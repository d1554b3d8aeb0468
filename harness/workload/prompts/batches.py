"""Requests of several texts each: to embed, or a query and the documents to rank for it."""

from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from random import Random

from harness.spec.scenario.synthetic import Documents, Rerank
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.text import TextMaker


def documents(spec: Documents, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    passages = texts.stream(repeat(spec.item_tokens, count * spec.items), random)
    for _ in range(count):
        yield _request(islice(passages, spec.items), spec.items * spec.item_tokens, spec.items)


def rerank(spec: Rerank, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    """Yields a query with documents. The query counts once per document, as engines read and count it."""
    lengths = [spec.query_tokens, *repeat(spec.document_tokens, spec.documents)]
    passages = texts.stream((length for _ in range(count) for length in lengths), random)
    tokens = spec.documents * (spec.query_tokens + spec.document_tokens)
    for _ in range(count):
        yield _request(islice(passages, len(lengths)), tokens, spec.documents)


def _request(texts: Iterable[str], tokens: int, items: int) -> ChatRequest:
    return ChatRequest(tuple(("user", text) for text in texts), 1, tokens, items=items)
