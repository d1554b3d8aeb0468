"""A worker that ends while its parent has something for it."""

from dataclasses import fields
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from harness.load import worker_pool
from harness.load.messages import Facts
from harness.load.worker_pool import LocalWorkerPool, Process

FACTS = Facts(**dict.fromkeys(field.name for field in fields(Facts)))


@pytest.mark.parametrize(("left", "lost"), [([FACTS], False), ([], True)])
def test_a_worker_that_had_ended_when_it_was_to_stop_is_lost_only_if_it_left_no_facts(left, lost):
    """A load that ended as it was closed lost its figures: "the load worker died"."""
    here, there = Pipe()
    pool = LocalWorkerPool()
    killed = SimpleNamespace(kill=lambda: None, wait=lambda _limit_s=None: -9)
    pool.workers.append(Process(share=None, process=killed, pipe=here))
    for message in left:
        there.send(message)
    there.close()
    pool.stop()
    pool.listen(0)
    (worker,) = pool.workers
    assert (worker.facts is None, worker.lost_at_ns is not None) == (lost, lost)
    assert worker.ended == ("killed by SIGKILL" if lost else "")
    pool.close()


def test_only_time_in_which_it_was_listened_to_counts_as_silence(monkeypatch):
    """A machine that stood still for a minute lost its load workers, which went on with it."""
    here, there = Pipe()
    pool = LocalWorkerPool()
    killed = SimpleNamespace(kill=lambda: None, wait=lambda _limit_s=None: -9)
    pool.workers.append(Process(share=None, process=killed, pipe=here))
    now_s = 1000.0
    clock = SimpleNamespace(monotonic=lambda: now_s, monotonic_ns=lambda: int(now_s * 1e9))
    monkeypatch.setattr(worker_pool, "time", clock)

    def waited(seconds):
        def wait(_pipes, _timeout_s):
            nonlocal now_s
            now_s += seconds
            return []

        monkeypatch.setattr(worker_pool, "wait", wait)

    waited(3600)
    pool.listen(0.1)
    (worker,) = pool.workers
    assert worker.running()
    waited(31)
    for _ in range(2):
        assert worker.running()
        pool.listen(31)
    assert worker.ended == "silent for 60 s"
    pool.close()
    there.close()
