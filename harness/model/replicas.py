"""Figures of several engines behind one backend: of each role, and of each URL."""

from typing import Annotated

from harness.model.choices import Balance
from harness.model.figures import LatencyStats
from harness.model.record import Record, doc


class RoleFigures(Record, frozen=True, kw_only=True):
    """Work of the engines of one role, as they count it; null: not counted. A prefill engine writes too."""

    urls: Annotated[tuple[str, ...], doc("Addresses of the engines whose metrics were read.")]
    prompt_tokens: Annotated[float | None, doc("Prompt tokens by the engines' counters, with cached ones.")]
    cached_prompt_tokens: Annotated[float | None, doc("Cached prompt tokens by the engines' counters.")]
    output_tokens: Annotated[float | None, doc("Output tokens by the engines' counters.")]
    running: Annotated[float | None, doc("Running requests of all the role's engines, mean of the window.")]
    waiting: Annotated[float | None, doc("Queued requests of all the role's engines, mean of the window.")]
    kv_use: Annotated[float | None, doc("Highest KV cache use of any engine of the role, 0 to 1.")]
    ttft_ms: Annotated[float | None, doc("Mean TTFT by the engines' own histograms.")]
    e2e_ms: Annotated[float | None, doc("Mean E2E by the engines' own histograms.")]


class TtftSplit(Record, frozen=True, kw_only=True):
    """Mean TTFT of all answers, warm-up included, and its parts."""

    client_ms: Annotated[float, doc("Mean time from the send to the first text, as bench saw it.")]
    prefill_ms: Annotated[float, doc("Mean E2E at the prefill engines: queue and prompt.")]
    decode_ms: Annotated[float, doc("Mean TTFT at the decode engines, with the transfer of the KV cache.")]
    transfer_ms: Annotated[
        float | None, doc("Mean transfer of the KV cache, a part of decode_ms; null: no engine counts it.")
    ]
    rest_ms: Annotated[float, doc("Rest of client_ms: the router and the network.")]


class Roles(Record, frozen=True, kw_only=True):
    """Engines behind one address that share the work on each request."""

    of: Annotated[
        dict[str, RoleFigures], doc("Figures of the engines by role; two roles are never added up.")
    ]
    ttft_split: Annotated[
        TtftSplit | None, doc("Parts of the mean TTFT; null: the engines do not count them.")
    ]


class Replica(Record, frozen=True, kw_only=True):
    """Share of the measured requests that went to one of several URLs."""

    url: Annotated[str, doc("Address of the server.")]
    requests: Annotated[int, doc("Measured requests that went to the server.")]
    ok: Annotated[int, doc("Measured requests that the server answered in full.")]
    failed: Annotated[int, doc("Measured requests that failed at the server; cancelled ones are left out.")]
    share: Annotated[
        float | None,
        doc("Share of the measured requests that went to the server, 0 to 1; null: none was sent."),
    ]
    ttft_ms: Annotated[LatencyStats, doc("TTFT at the server, defined as the cell's.")]
    tpot_ms: Annotated[LatencyStats, doc("TPOT at the server, defined as the cell's.")]
    e2e_ms: Annotated[LatencyStats, doc("E2E at the server, defined as the cell's.")]
    cached_share: Annotated[
        float | None, doc("Share of the server's prompt tokens from its cache, 0 to 1; null: usage lacks it.")
    ]
    output_tokens_per_s: Annotated[
        float | None, doc("Output tokens/s of the server in the cell's window; null: no token counts.")
    ]


class Replicas(Record, frozen=True, kw_only=True):
    """Several servers of one model that shared the requests of a cell."""

    balance: Annotated[Balance, doc("How requests were spread: round-robin or least-outstanding.")]
    fairness: Annotated[
        float | None,
        doc("Jain's index of the output tokens/s, 1/n to 1: 1 where all URLs gave as many; null: not known."),
    ]
    urls: Annotated[tuple[Replica, ...], doc("Figures of each server, in the order given.")]
