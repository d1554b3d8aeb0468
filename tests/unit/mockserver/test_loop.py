import os
import signal
import time

import pytest

from harness.mockserver.loop import Loop


@pytest.fixture
def loop():
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    loop = Loop()
    with loop.ended_by_signals():
        yield loop
    signal.signal(signal.SIGTERM, handler)


def slept_too_long():
    raise AssertionError("the signal did not end the loop")


def test_a_signal_whose_handler_has_run_ends_the_next_sleep(loop):
    os.kill(os.getpid(), signal.SIGTERM)
    loop.at(time.monotonic_ns() + 5_000_000_000, slept_too_long)
    loop.run()


def test_a_signal_without_a_handler_of_its_own_is_nothing(loop):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
    calls = []
    loop.at(time.monotonic_ns(), lambda: (calls.append("after it"), loop.stop()))
    loop.run()
    assert calls == ["after it"]
