"""One chat request as every backend will get it, before any engine's dialect is applied."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Message = tuple[str, str]  # role, content

# Token counts of texts, without special tokens and without a chat template.
TokenCounter = Callable[[Sequence[str]], Sequence[int]]


Shape = Literal["json_schema", "json_object", "regex", "choice", "grammar"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the answer's text must be; the engine is asked to enforce it.

    `value` by shape. json_schema: the schema, a dict. json_object: None. regex, grammar (GBNF, rule `root`):
    the text. choice: the texts to choose from.
    """

    shape: Shape
    value: Any = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    messages: tuple[Message, ...]
    max_tokens: int
    group: int = -1  # requests of one group share their first `shared_tokens`; -1: nothing shared
    shared_tokens: int = 0
    content_tokens: int = 0  # of all messages, without the chat template


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of one cell: equal bytes for every backend."""

    requests: tuple[ChatRequest, ...]
    exact: bool  # lengths were made and checked with the model's tokenizer
    sha256: str

    def ideal_hit_rate(self, skip: int = 0, *, warm: bool = False) -> float:
        """Share of content tokens a cache of unlimited size could reuse when requests run one after another.

        From an empty cache, or (`warm`) from one that holds what each group shares. The chat template is left
        out, blocks are not rounded to. `skip` warm-up requests fill the cache and are not counted.
        """
        seen = {request.group for request in self.requests} if warm else set()
        shared = total = 0
        for position, request in enumerate(self.requests):
            if position >= skip:
                total += request.content_tokens
                shared += request.shared_tokens if request.group in seen else 0
            if request.group >= 0:
                seen.add(request.group)
        return shared / total if total else 0.0


def workload(requests: Sequence[ChatRequest], exact: bool) -> Workload:
    digest = hashlib.sha256()
    for request in requests:
        line = json.dumps([request.messages, request.max_tokens], ensure_ascii=False, separators=(",", ":"))
        digest.update(line.encode() + b"\n")
    return Workload(tuple(requests), exact, digest.hexdigest())
