"""What one coordinator pays for many load nodes: pings, orders, news, records.

`python -m tests.bench.cluster_scale [--nodes 10,100,1000]` follows simulated nodes. Their clocks are asked
for over real sockets of one other process, whose clock is this one's, so that every offset found is an error.
Their answers are made here. `--ray` measures a real actor: what a remote call and a fetched megabyte cost.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from harness.cluster.node import About
from harness.cluster.pings import TOKEN_BYTES, Clock, ClockServer
from harness.cluster.worker_pool import ClusterWorkerPool, RemoteNode
from harness.host.access import Access
from harness.load.job import ClosedLoop, LoadJob
from harness.load.messages import READY, Pulse, Share
from harness.load.transport import Transport

TOKEN = bytes(TOKEN_BYTES)
CHUNK = 16 << 20
PULSE = Pulse(100, 90, 0, 10, tuple(range(50_000_000, 50_000_008)), 500)


class Nodes:
    """Answers for all nodes, each `hear` a quarter of a second after it was asked."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, Future[Any], object]] = []
        self._number, self._more = 0, threading.Condition()
        self.calls = 0
        threading.Thread(target=self._answer, daemon=True).start()

    def call(self, number: int, method: str, *arguments: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        self.calls += 1
        if method == "hear":
            with self._more:
                self._number += 1
                due = time.monotonic() + 0.25 + arguments[1]
                heappush(self._waiting, (due, self._number, answer, [(number, READY), (number, PULSE)]))
                self._more.notify()
        else:
            answer.set_result({} if method == "samples" else b"")
        return answer

    def _answer(self) -> None:
        while True:
            with self._more:
                while not self._waiting or self._waiting[0][0] > time.monotonic():
                    self._more.wait(self._waiting[0][0] - time.monotonic() if self._waiting else None)
                _, _, answer, said = heappop(self._waiting)
            answer.set_result(said)


def follow(count: int, port: int, seconds: float, scratch: Path) -> str:
    nodes = Nodes()
    remote_nodes = [
        RemoteNode(
            About("127.0.0.1", f"node{number}", "", "", 1, 0, port),
            lambda method, *rest, number=number: nodes.call(number, method, *rest),
            Clock("127.0.0.1", port, TOKEN),
        )
        for number in range(count)
    ]
    pool = ClusterWorkerPool(remote_nodes)
    job = LoadJob(url="http://127.0.0.1:1", access=Access(), bodies=(), schedule=ClosedLoop(1))
    began = time.monotonic()
    for number in range(count):
        folder = scratch / str(number)
        folder.mkdir()
        pool.start(Share(job, np.zeros(0, np.int32), number, folder, Transport.POLL))
    while not all(worker.ready for worker in pool.workers):
        pool.listen(0.1)
    ready_s, began = time.monotonic() - began, time.monotonic()
    t0 = pool.begin()
    begin_s, told_late_ms = time.monotonic() - began, max(time.monotonic_ns() - t0, 0) / 1e6
    cpu, nodes.calls, until = time.process_time(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        pool.listen(0.1)
    cpu, calls = (time.process_time() - cpu) / seconds, nodes.calls / seconds
    pool.collect(t0)
    errors_us = [abs(node.clock_offset_ms or 0.0) * 1e3 for node in pool.nodes()]
    known_us = [(node.clock_uncertainty_ms or 0.0) * 1e3 for node in pool.nodes()]
    return (
        f"{count:>6,}{ready_s:>9.1f}{begin_s:>9.1f}{told_late_ms:>9.0f}{calls:>10.0f}{cpu:>11.2f}"
        f"{np.median(errors_us):>15.1f}{max(errors_us):>9.1f}{np.median(known_us):>15.1f}{max(known_us):>9.1f}"
    )


def follow_all(counts: list[int], seconds: float) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "--serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        print(
            f"{'nodes':>6}{'ready s':>9}{'begin s':>9}{'late ms':>9}{'calls/s':>10}{'CPU cores':>11}"
            f"{'error p50 µs':>15}{'max':>9}{'known p50 µs':>15}{'max':>9}"
        )
        for count in counts:
            with tempfile.TemporaryDirectory() as scratch:
                print(follow(count, port, seconds, Path(scratch)), flush=True)
    finally:
        server.kill()
        server.wait()


class Chunks:
    def nothing(self) -> None:
        pass

    def read(self, size: int) -> bytes:
        return bytes(size)


def ask_ray() -> None:
    import ray

    ray.init(address="local", num_cpus=1, include_dashboard=False, _node_ip_address="127.0.0.1")
    began = time.monotonic()
    actor = ray.remote(Chunks).remote()
    ray.get(actor.nothing.remote())
    print(f"actor ready after {time.monotonic() - began:.1f} s")
    for times in (200, 2000):  # the first to warm up
        began, cpu = time.monotonic(), time.process_time()
        for _ in range(times):
            actor.nothing.remote().future().result()
        wall, cpu = time.monotonic() - began, time.process_time() - cpu
    print(f"a call: {wall / times * 1e6:.0f} µs, {cpu / times * 1e6:.0f} µs of the coordinator's CPU")
    for times in (2, 32):
        began, cpu = time.monotonic(), time.process_time()
        for _ in range(times):
            actor.read.remote(CHUNK).future().result()
        wall, cpu = time.monotonic() - began, time.process_time() - cpu
    mb = times * CHUNK / 1e6
    print(f"records: {mb / wall:.0f} MB/s, {cpu / mb * 1e3:.2f} ms of the coordinator's CPU a MB")
    ray.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="10,100,1000")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        print(ClockServer("127.0.0.1", TOKEN).port, flush=True)
        threading.Event().wait()
    elif arguments.ray:
        ask_ray()
    else:
        follow_all([int(count) for count in arguments.nodes.split(",")], arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
