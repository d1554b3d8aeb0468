"""Signals of a run that is not measuring."""

import signal
import threading

import pytest

from harness.run.interrupts import Interrupts


class Ending:
    """Python prints an exception of a destructor, and goes on."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def _end_and_wait() -> None:
    Ending()
    threading.Event().wait(20)  # for the signal, which comes at once


def test_a_signal_that_comes_in_a_destructor_is_not_lost():
    with Interrupts(), pytest.raises(KeyboardInterrupt):
        _end_and_wait()


def test_the_second_signal_of_a_window_is_raised():
    with Interrupts() as interrupts, interrupts.window() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
