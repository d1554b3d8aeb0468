"""Counters of an engine that answers late."""

import threading
from functools import partial
from types import SimpleNamespace

from harness.engines.provide import logged
from harness.run.measure.engine_counters import _answers


def test_engines_are_read_at_the_same_time_and_a_wait_is_reported(monkeypatch):
    """A frozen server took 20 seconds after its load, and each replica 20 more, without a line."""
    monkeypatch.setattr(logged, "_REPORT_EVERY_S", 0.0)
    monkeypatch.setattr(logged, "time", SimpleNamespace(monotonic=lambda: 100.0))
    both, reported, lines = threading.Barrier(2), threading.Event(), []

    def say(line):
        lines.append(line)
        reported.set()

    def read(number):
        both.wait(30)
        return number, reported.wait(30)

    answers = _answers([partial(read, 1), partial(read, 2)], say, "reading the engine's counters")
    assert answers == [(1, True), (2, True)]
    assert set(lines) == {"reading the engine's counters (0 s)"}
