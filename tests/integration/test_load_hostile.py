"""Whole windows against servers that mean harm, on each carrier: every request ends, memory stays bounded."""

import time
from dataclasses import replace
from itertools import chain, repeat

import pytest

from harness.host.access import Access
from harness.load.balance import balancer_of
from harness.load.bounds import Limits, answer_bytes
from harness.load.dispatcher import ClosedLoopDispatcher, Closing
from harness.load.httpx_carrier import HttpxCarrier
from harness.load.job import ClosedLoop, LoadJob
from harness.load.run import run_load
from harness.load.task_carrier import TaskCarrier
from harness.load.window import Window
from harness.records.layout import Outcome
from tests.factories.hostile import HARMS as HARMS_TO_ALL
from tests.factories.hostile import chunks, serving

_BODY = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
HARMS = {
    **HARMS_TO_ALL,
    "endless trailers": lambda: chain(chunks([_BODY]), [b"0\r\n"], repeat(b"a: b\r\n" * 1000)),
    "one endless trailer": lambda: chain(chunks([_BODY]), [b"0\r\na: "], repeat(b"x" * 6000)),
}

ENDS = {
    "slow head": Outcome.TIMEOUT,
    "slow body": Outcome.TIMEOUT,
    "slow chunks": Outcome.TIMEOUT,
    "silence": Outcome.TIMEOUT,
}


def job(url, **fields):
    made = LoadJob(
        url=f"{url}/v1/chat/completions",
        access=Access(),
        bodies=[b"{}"] * 4,
        schedule=ClosedLoop(2),
        request_timeout_s=0.5,
        drain_timeout_s=0.5,
        answer_bytes=answer_bytes(16),
        workers=1,
    )
    return replace(made, **fields)


@pytest.mark.parametrize("harm", HARMS)
def test_every_harm_has_its_outcome_and_little_memory(harm):
    with serving(lambda _: HARMS[harm]()) as url:
        result = run_load(job(url, request_timeout_s=0.5 if harm in ENDS else 20.0))
    outcomes = {Outcome(code) for code in result.records.requests["outcome"]}
    assert outcomes == {ENDS.get(harm, Outcome.OVERSIZED)}
    assert all(result.records.errors)
    assert result.client.peak_rss_bytes < 200 << 20


# What is decompressed is decompressed on both ways alike, after the window.
@pytest.mark.parametrize("harm", [harm for harm in HARMS if harm != "small gzip bomb"])
def test_the_way_through_httpx_keeps_the_bounds(harm):
    ended = []
    with serving(lambda _: HARMS[harm]()) as url:
        asked = job(url)
        window = Window([0, 1], balancer_of(asked), Limits(500_000_000, 500_000_000))
        carrier = TaskCarrier(HttpxCarrier(asked), [b"{}"] * 2, 1 << 20, window)
        try:
            window.run(
                carrier,
                ClosedLoopDispatcher(ClosedLoop(2), 2, time.monotonic_ns(), Closing(0, None)),
                ended.append,
                lambda: False,
            )
        finally:
            carrier.close()
    assert len(ended) == 2
    for exchange in ended:
        assert exchange.failure in (Outcome.OVERSIZED, Outcome.TIMEOUT, Outcome.MALFORMED)
        assert exchange.answer.wire_bytes <= 2 << 20
