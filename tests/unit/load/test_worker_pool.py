"""A worker that ends while its parent has something for it."""

from dataclasses import fields
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

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
