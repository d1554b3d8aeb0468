"""Pings during a window: they end with it, because the next one asks over the same connection."""

import threading
from concurrent.futures import Future

from harness.cluster import worker_pool
from harness.cluster.clocks import Ping
from harness.cluster.node import About
from harness.cluster.worker_pool import ClusterWorkerPool, RemoteNode


class SlowClock:
    """Answers at once before the window; during it each burst lasts until `release` is set."""

    def __init__(self):
        self.asked, self.release = threading.Event(), threading.Event()

    def burst(self, count):
        if count == worker_pool._PINGS_DURING:
            self.asked.set()
            self.release.wait(30)
        return [Ping(0, 1, 1, 2)]


def answered(*_call):
    answer = Future()
    answer.set_result(None)
    return answer


def test_a_window_that_fails_waits_for_the_pings_under_way(monkeypatch):
    monkeypatch.setattr(worker_pool, "_PING_EVERY_S", 0.001)
    clock = SlowClock()
    pool = ClusterWorkerPool([RemoteNode(About("h", "h", "", "", 1, 0, 1), answered, clock)])
    pool.begin()
    assert clock.asked.wait(30)
    threading.Timer(0.05, clock.release.set).start()
    pool.close()  # without `collect`
    assert clock.release.is_set()
