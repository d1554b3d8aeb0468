"""What a prefix cache could reuse of a workload: the ideal for a measured hit rate."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

import numpy as np
from numpy.typing import NDArray

from harness.metrics.view import RequestView
from harness.records.layout import UNKNOWN
from harness.records.request_table import Part, RequestTable

Counts = NDArray[np.int64]

# Of the caches that are about: radix trees and slots, SGLang's and vLLM's pages on a GPU, vLLM's on a CPU.
BLOCKS = (1, 16, 64, 128)


def reusable(
    requested: RequestTable,
    *,
    block: int = 1,
    state: str | None = None,
    replicas: Counts | None = None,
    prompt_tokens: Counts | None = None,
    output_tokens: Counts | None = None,
) -> tuple[Counts, Counts]:
    """Reusable and all prompt tokens of each request, with a cache of unlimited size, or one for each of
    `replicas`, which says where each request went.

    Requests come one after another, in order. A cache that reuses whole blocks has `block` above 1 (1: a
    radix cache). In the `state` "warm" it holds from the start what is shared, "primed" all prompts but those
    of later turns, in any other nothing. A later turn may reuse the whole turn before it with its answer, a
    recorded call what it keeps of an earlier prompt. Without `prompt_tokens` (-1: unknown) the chat template
    is left out; an answer without `output_tokens` has the length asked for.
    The last token of a prompt is always computed.
    """
    went = [0] * len(requested) if replicas is None else replicas.tolist()
    trees = {replica: _Tree(requested.shared if state == "warm" else ()) for replica in set(went)}
    held: dict[int, dict[int, float]] = {replica: {} for replica in trees}
    shared, total = np.zeros(len(requested), np.int64), np.zeros(len(requested), np.int64)
    rows = requested.numbers
    content = before = 0
    for i in range(len(requested)):
        if rows["kept"][i] >= 0:
            known = _held_of_call(i, rows, held[went[i]])
            content = int(rows["kept"][i]) + int(rows["content_tokens"][i])
        elif rows["turn"][i] > 0:
            known, content = before, content + int(rows["content_tokens"][i])
        else:
            known, content = trees[went[i]].walk(requested.shared[i]), int(rows["content_tokens"][i])
        counted = -1 if prompt_tokens is None else int(prompt_tokens[i])
        total[i] = content if counted < 0 else counted
        if counted >= 0 and rows["turn"][i] > 0:  # calls that were cut are sent back without arguments
            known = min(known, counted - int(rows["content_tokens"][i]))
        if state == "primed" and rows["turn"][i] <= 0:
            known = int(total[i])
        shared[i] = max(min(known, total[i] - 1), 0) // block * block
        answer = -1 if output_tokens is None else int(output_tokens[i])
        answer = int(rows["max_tokens"][i]) if answer < 0 else answer
        before, content = int(total[i]) + answer, content + answer
    return shared, total


def _held_of_call(number: int, rows: NDArray[np.void], held: dict[int, float]) -> int:
    """Tokens of the prompt of a recorded call that a cache has; it has the whole prompt from now on.

    `held`: tokens of the prompts of calls that the cache has, by the number of the call. That call may have
    gone to another server than one that begins like it.
    """
    known, like, tokens = 0.0, number, inf
    while like >= 0 and tokens > (before := held.get(like, 0)):
        known, held[like] = max(known, before), tokens
        like, tokens = like - max(int(rows["base"][like]), 0), min(tokens, int(rows["kept"][like]))
    return int(max(known, tokens))


def ideal_hit_rate(
    requested: RequestTable,
    rows: slice | Counts = slice(None),
    *,
    block: int = 1,
    state: str | None = None,
    replicas: Counts | None = None,
    counts: Mapping[str, Counts] | None = None,
) -> float:
    """The share of the content tokens of the requests at `rows`; the others only fill the cache.

    `counts`: those of `counted`, instead of the tokens that were asked for.
    """
    return share(*reusable(requested, block=block, state=state, replicas=replicas, **counts or {}), rows)


def share(shared: Counts, total: Counts, rows: slice | Counts) -> float:
    """The ratio of what `reusable` returns, over the requests at `rows`."""
    return float(shared[rows].sum() / max(total[rows].sum(), 1))


def first_turns(requested: RequestTable) -> Iterator[int]:
    """Requests that can be sent apart from the cell: later turns carry answers that are not known yet."""
    return iter(np.flatnonzero(requested.numbers["turn"] <= 0).tolist())


def first_of_each_prefix(requested: RequestTable) -> Iterator[int]:
    """Positions of the first turns whose shared part is new."""
    tree = _Tree(())
    for position, path in enumerate(requested.shared):
        first_turn = requested.numbers["turn"][position] <= 0
        if first_turn and tree.walk(path) < sum(part.tokens for part in path):
            yield position


def counted(view: RequestView, requested: RequestTable) -> dict[str, Counts]:
    """Tokens of prompts and answers as the server counted them, as `reusable` takes them.

    An answer with reasoning counts none: the next turn leaves its reasoning out, so that a cache finds
    nothing behind the prompt.
    """
    requests = view.requests
    prompt_tokens, output_tokens = (np.full(len(requested), UNKNOWN, np.int64) for _ in range(2))
    prompt_tokens[requests["seq"]] = requests["prompt_tokens"]
    output_tokens[requests["seq"]] = np.where(reasoned(requests), 0, requests["output_tokens"])
    return {"prompt_tokens": prompt_tokens, "output_tokens": output_tokens}


def reasoned(requests: NDArray[np.void]) -> NDArray[np.bool_]:
    """Whether each answer has reasoning."""
    mask: NDArray[np.bool_] = (requests["first_reasoning_ns"] != UNKNOWN) | (requests["reasoning_tokens"] > 0)
    return mask


def ideals(
    view: RequestView, requested: RequestTable, *, state: str | None = None, replicas: Counts | None = None
) -> dict[str, float] | None:
    """Ideal hit rates of the measured answers by block size, from the prompt tokens that the server counted.

    `state` and `replicas` are those of `reusable`. Requests are taken in the order of their
    workload. None where an answer came without its prompt tokens, or where the server counted none at all.
    """
    rows, counts = view.answers, counted(view, requested)
    if (rows["prompt_tokens"] == UNKNOWN).any() or not rows["prompt_tokens"].any():
        return None
    return {
        str(block): ideal_hit_rate(
            requested, rows["seq"], block=block, state=state, replicas=replicas, counts=counts
        )
        for block in BLOCKS
    }


class _Tree:
    """Prefixes seen so far, as paths of parts."""

    def __init__(self, known: Iterable[tuple[Part, ...]]) -> None:
        self._children: dict[tuple[int, int], int] = {}
        for path in known:
            self.walk(path)

    def walk(self, path: tuple[Part, ...]) -> int:
        """The tokens at the beginning of the path that were seen before; adds the whole path."""
        node = known = 0
        for part in path:
            unseen = len(self._children) + 1
            child = self._children.setdefault((node, part.id), unseen)
            known += part.tokens if child != unseen else 0
            node = child
        return known
