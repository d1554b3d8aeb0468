"""The requests of one load point as a document: number, lengths, similarity, send times. Pure."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from harness.metrics.arrivals import statistics
from harness.metrics.prefix import reusable
from harness.model import ChatCount, Histogram, Lengths, RequestFigures, Sharing
from harness.records.request_table import RequestTable

BLOCK_TOKENS = 16  # of a paged cache that reuses whole blocks: the default of vLLM
_BINS = 12

Ints = NDArray[np.int64]


def describe(requested: RequestTable, warmup: int, send_ns: Ints | None) -> RequestFigures:
    """`send_ns`: the schedule of an open loop; None for a closed one.

    Prompt lengths are those of the content: a chat template comes on top. In a later turn all of the
    conversation counts, with answers as long as they were asked for.
    """
    shared, total = reusable(requested)
    in_blocks, _ = reusable(requested, block=BLOCK_TOKENS)
    numbers = requested.numbers
    of_text = (numbers["items"] < 0) & (numbers["audio_ms"] < 0)  # other answers have no length to ask for
    return RequestFigures(
        requests=len(requested) - warmup,
        warmup_requests=warmup,
        input_tokens=_lengths(total),
        output_tokens=_lengths(np.where(of_text, numbers["max_tokens"], 0)),
        kinds=dict(Counter(kind for kind in requested.kinds if kind)),
        sessions=_sessions(requested),
        sharing=Sharing(
            prompt_tokens=int(total.sum()),
            unique_share=1 - _share(shared, total),
            radix_hit_rate=_share(shared, total),
            block_hit_rate=_share(in_blocks, total),
            block_tokens=BLOCK_TOKENS,
            sharing_requests=int(np.count_nonzero(shared)),
        ),
        arrivals=None if send_ns is None else statistics(send_ns),
    )


def _lengths(values: Ints) -> Lengths:
    """Lengths with a histogram whose bins grow by a constant factor; of no token, in a bin of their own."""
    low, high = int(values.min()), int(values.max())
    edges = np.unique([low, *np.geomspace(max(low, 1), high + 1, _BINS + 1).round().astype(np.int64)])
    counts, _ = np.histogram(values, edges)
    return Lengths(
        min=low,
        p50=float(np.median(values)),
        mean=float(values.mean()),
        p90=float(np.quantile(values, 0.9)),
        max=high,
        histogram=Histogram(edges=tuple(edges.tolist()), counts=tuple(counts.tolist())),
    )


def _sessions(requested: RequestTable) -> ChatCount | None:
    if not requested.has_sessions():
        return None
    turns = np.unique(requested.numbers["session"], return_counts=True)[1]
    return ChatCount(count=len(turns), turns_mean=float(turns.mean()), turns_max=int(turns.max()))


def _share(part: Ints, whole: Ints) -> float:
    return float(part.sum() / max(whole.sum(), 1))
