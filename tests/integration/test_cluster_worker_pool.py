"""A cluster's window without Ray: two nodes of this process, one with a clock of its own."""

import errno
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from harness.cluster import node as cluster_node
from harness.cluster.clocks import Ping
from harness.cluster.node import Node
from harness.cluster.pings import TOKEN_BYTES, Clock
from harness.cluster.worker_pool import ClusterWorkerPool, RemoteNode
from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, OpenLoop
from harness.load.messages import Share
from harness.mockserver import running
from harness.records.layout import Outcome

S = 10**9
OFFSET = 3000 * S


class ShiftedClock(Clock):
    """Of a node whose clock shows OFFSET more."""

    def burst(self, count: int) -> list[Ping]:
        return [Ping(p.sent, p.received + OFFSET, p.answered + OFFSET, p.heard) for p in super().burst(count)]


@contextmanager
def places(dies_after: int | None = None) -> Iterator[list[RemoteNode]]:
    """The second is `OFFSET` ahead; it is gone after so many looks at what its workers said."""
    with ThreadPoolExecutor(8) as pool:
        made, nodes = [], []
        for index in range(2):
            token = secrets.token_bytes(TOKEN_BYTES)
            node = Node("127.0.0.1", token)
            nodes.append(node)
            looks = threading.Semaphore(10**6 if index == 0 or dies_after is None else dies_after)

            def call(
                method: str,
                *given: Any,
                node: Node = node,
                offset: int = index * OFFSET,
                looks: threading.Semaphore = looks,
            ) -> "Future[Any]":
                if method == "hear" and not looks.acquire(blocking=False):
                    node.close()
                    return pool.submit(_gone)
                if method == "begin":
                    given = (given[0] - offset,)
                return pool.submit(getattr(node, method), *given)

            clock = (ShiftedClock if index else Clock)("127.0.0.1", node.about().clock_port, token)
            made.append(RemoteNode(node.about(), call, clock))
        try:
            yield made
        finally:
            for place, node in zip(made, nodes, strict=True):
                place.clock.close()
                node.close()


def _gone() -> None:
    raise ConnectionError("the node died\nand more")


def job(url: str, count: int, schedule: ClosedLoop | OpenLoop) -> LoadJob:
    body = b'{"model":"m","stream":true,"max_tokens":4,"messages":[{"role":"user","content":"%d"}]}'
    return LoadJob(
        url + "/v1/chat/completions",
        Access(),
        [body % i for i in range(count)],
        schedule,
        workers=2,
        request_timeout_s=10.0,
    )


@pytest.mark.time
def test_two_nodes_send_the_one_schedule_and_their_records_are_on_one_clock() -> None:
    intended = np.arange(40) * 25_000_000
    with running(ttft_ms=20, gap_ms=5) as server, places() as nodes:
        worker_pool = ClusterWorkerPool(nodes)
        result = run_load(job(server.url, 40, OpenLoop(intended)), worker_pool=worker_pool)
        ledger = server.truth()["records"]
    rows, told = result.records.requests, worker_pool.nodes()
    assert rows["seq"].tolist() == list(range(40))
    assert (rows["outcome"] == Outcome.OK).all()
    assert rows["worker"].tolist() == [0, 1] * 20
    received = np.sort([record["received_ns"] for record in ledger]) - result.t0_monotonic_ns
    # The server's clock is the coordinator's: each request came right after it was sent.
    assert np.abs(received - np.sort(rows["sent_ns"])).max() < 20_000_000
    ttft_ms = (rows["first_text_ns"] - rows["sent_ns"]) / 1e6
    assert 19 < np.median(ttft_ms) < 40
    assert [node.workers for node in told] == [(0,), (1,)]
    assert abs(told[1].clock_offset_ms - 3e6) < 5
    assert abs(told[0].clock_offset_ms) < 5
    assert all(node.pings >= 200 and node.lost is None for node in told)
    assert all(abs(node.start_skew_ms) < 5 for node in told)


def test_a_node_that_is_lost_is_named_and_the_others_records_are_kept() -> None:
    with running(ttft_ms=20, gap_ms=5) as server, places(dies_after=4) as nodes:
        worker_pool = ClusterWorkerPool(nodes)
        result = run_load(job(server.url, 40, OpenLoop(np.arange(40) * 75_000_000)), worker_pool=worker_pool)
    rows = result.records.requests
    kept = rows[rows["worker"] == 0]
    assert (kept["outcome"] == Outcome.OK).all()
    assert len(kept) == 20
    assert (rows[rows["worker"] == 1]["outcome"] == Outcome.LOST).all()
    assert result.client.lost_workers == 1
    assert [node.lost for node in worker_pool.nodes()] == [None, "the node died"]


@pytest.mark.parametrize("full", [(1,), (0, 1)])
def test_nodes_that_cannot_write_are_lost_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, full: tuple[int, ...]
) -> None:
    here = cluster_node._here

    def on_a_full_disk(share: Share, *given: Any) -> Share:
        if share.worker in full:
            raise OSError(errno.ENOSPC, "No space left on device", "/tmp/load")
        return here(share, *given)

    monkeypatch.setattr(cluster_node, "_here", on_a_full_disk)
    with running(ttft_ms=20, gap_ms=5) as server, places() as nodes:
        worker_pool = ClusterWorkerPool(nodes)
        result = run_load(job(server.url, 8, OpenLoop(np.arange(8) * 25_000_000)), worker_pool=worker_pool)
    assert {node.lost for node in worker_pool.nodes()} - {None} == {"/tmp/load: no space left on device"}
    rows = result.records.requests
    assert len(rows[rows["outcome"] == Outcome.OK]) == 4 * (2 - len(full))
    assert result.client.lost_workers == len(full)
