"""Answers for the tests of the load room: built as wire bytes, played read by read like the loop does."""

import json
from collections.abc import Sequence

import numpy as np

from harness.apis import CHAT, Api
from harness.load.exchange import Exchange
from harness.load.finalize import Finalized, Finalizer
from harness.load.http1 import Answer
from harness.load.job import Promised
from harness.records.layout import Outcome, Phase
from harness.untrusted import Secrets


def delta(content: str | None = None, *, ascii_only: bool = True, **fields: object) -> bytes:
    """One chat chunk as JSON; `fields` go into the delta."""
    inside = {**({} if content is None else {"content": content}), **fields}
    chunk = {"id": "chat-1", "model": "m", "choices": [{"index": 0, "delta": inside, "finish_reason": None}]}
    return json.dumps(chunk, ensure_ascii=ascii_only, separators=(",", ":")).encode()


def event(data: bytes, line_end: bytes = b"\n") -> bytes:
    return b"data: " + data + 2 * line_end


USAGE = json.dumps(
    {
        "choices": [],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}},
    }
).encode()
FINISH = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode()
DONE = b"[DONE]"


def head(*lines: str, status: str = "200 OK", content_type: str = "text/event-stream") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"content-type: {content_type}", *lines, "", ""]).encode()


def chunked(parts: Sequence[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


_PROMISED = Promised()
CHUNKED = "transfer-encoding: chunked"


def play(
    reads: Sequence[bytes],
    failure: Outcome | None = None,
    stamps: Sequence[int] | None = None,
    promised: Promised = _PROMISED,
    api: Api = CHAT,
) -> Finalized:
    """The record of an answer that arrived in these reads, at 1, 2, 3, ... or at these `stamps`."""
    answer = Answer()
    arrivals = list(stamps or range(1, len(reads) + 1))
    for read, stamp in zip(reads, arrivals, strict=True):
        answer.take(read, stamp)
    if not answer.complete and failure is None:
        failure = Outcome.MALFORMED if answer.problem else Outcome.TRUNCATED if answer.framed() else None
    if answer.oversized:
        failure = Outcome.OVERSIZED
    answer.close()
    finalizer = Finalizer(
        0,
        lambda taken: np.asarray(taken, np.int64),
        Secrets(["sk-secret"]),
        np.array([Phase.MEASURE], np.uint8),
        0,
        closed_loop=False,
        promised=promised,
        api=api,
    )
    exchange = Exchange(3, 0, 0, 0, 0, arrivals[-1], answer, failure, answer.problem)
    return finalizer.finalize(exchange)


def field(settled: Finalized, name: str) -> int:
    from harness.records.layout import REQUEST_DTYPE

    assert REQUEST_DTYPE.names is not None
    return int(settled.row[REQUEST_DTYPE.names.index(name)])
