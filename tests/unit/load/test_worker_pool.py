"""A worker that ends while its parent has something for it, or says nothing."""

from dataclasses import fields
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from harness.load import worker_pool
from harness.load.messages import Facts, Pulse
from harness.load.worker_pool import LocalWorkerPool, Process

FACTS = Facts(**dict.fromkeys(field.name for field in fields(Facts)))
PULSE = Pulse(sent=1, done=0, failed=0, in_flight=1, ttft_ns=(), text_events=1)


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


@pytest.fixture
def listen(monkeypatch):
    """Listens to a worker for `timeout_s`, while the clock of this machine goes on by `waited_s`."""
    here, there = Pipe()
    pool = LocalWorkerPool()
    killed = SimpleNamespace(kill=lambda: None, wait=lambda _limit_s=None: -9)
    worker = Process(share=None, process=killed, pipe=here)
    pool.workers.append(worker)
    now_s = 1000.0
    clock = SimpleNamespace(monotonic=lambda: now_s, monotonic_ns=lambda: int(now_s * 1e9))
    monkeypatch.setattr(worker_pool, "time", clock)

    def listen(timeout_s, waited_s, *, pulses=False):
        def wait(pipes, _timeout_s):
            nonlocal now_s
            now_s += waited_s
            return pipes if pulses else []

        monkeypatch.setattr(worker_pool, "wait", wait)
        if pulses:
            there.send(PULSE)
        pool.listen(timeout_s)
        return worker

    yield listen
    pool.close()
    there.close()


def test_a_worker_is_lost_after_a_minute_in_which_it_was_listened_to(listen):
    assert listen(31, 31).running()
    assert listen(31, 31).ended == "silent for 60 s"


def test_time_in_which_the_machine_stood_still_is_no_silence(listen):
    """It lost its load workers, which went on with it."""
    assert listen(0.1, 3600).running()


def test_a_pulse_ends_the_silence(listen):
    for _ in range(3):
        assert listen(31, 31).running()
        assert listen(31, 1, pulses=True).running()
