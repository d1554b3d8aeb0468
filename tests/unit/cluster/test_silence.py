"""A node that says nothing while it is listened to is lost."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

import harness.cluster.worker_pool
import harness.load.worker_pool
from harness.cluster.worker_pool import ClusterWorkerPool, RemoteNode
from harness.load.worker_pool import Worker


class Remote:
    """A node that answers at once, but says what it heard when the test lets it."""

    def __init__(self):
        self.heard = Future()

    def __call__(self, method, *_given):
        if method == "hear":
            self.heard = Future()
            return self.heard
        answered = Future()
        answered.set_result(None)
        return answered


@pytest.fixture
def remote():
    return Remote()


@pytest.fixture
def listen(remote, monkeypatch):
    """Whether the node runs after `timeout_s`, in which the clock of this machine went on by `waited_s`."""
    now_s = 1000.0
    clock = SimpleNamespace(monotonic=lambda: now_s, monotonic_ns=lambda: int(now_s * 1e9))
    for module in (harness.cluster.worker_pool, harness.load.worker_pool):
        monkeypatch.setattr(module, "time", clock)
    node = RemoteNode(SimpleNamespace(hostname="a", address="10.0.0.1"), remote, clock=None)
    pool = ClusterWorkerPool([node])
    (part,) = pool._parts
    part.workers.append(Worker(share=SimpleNamespace(worker=0)))

    def listen(timeout_s, waited_s, *, answers=False):
        def wait(pending, *_limits):
            nonlocal now_s
            now_s += waited_s
            if answers:
                remote.heard.set_result(())
            return {each for each in pending if each.done()}, ()

        monkeypatch.setattr(harness.cluster.worker_pool, "wait", wait)
        pool.listen(timeout_s)
        return part.running()

    return listen


def test_a_node_is_lost_after_30_seconds_in_which_it_was_listened_to(listen):
    assert listen(16, 16)
    assert not listen(16, 16)


def test_time_in_which_this_machine_stood_still_is_no_silence(listen):
    assert listen(0.1, 3600)


def test_an_answer_ends_the_silence(listen):
    for _ in range(3):
        assert listen(16, 16)
        assert listen(16, 1, answers=True)
