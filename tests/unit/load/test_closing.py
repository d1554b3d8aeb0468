"""What closed a window, and the timeouts that count: whatever came first."""

import threading
from types import SimpleNamespace

import pytest

from harness.load.job import ClosedLoop, OpenLoop
from harness.load.run import _follow, _last_timeouts


class Pool:
    """Two workers of two slots each. `looks`: what their pulses count at each look, then both have ended."""

    def __init__(self, looks, stop, stops_at=None, schedule=None):
        share = SimpleNamespace(job=SimpleNamespace(schedule=schedule or ClosedLoop(2)))
        self.workers = [SimpleNamespace(share=share, pulse=None) for _ in range(2)]
        self._looks, self._stop, self._stops_at = iter(looks), stop, stops_at
        self._seen, self._over, self.stopped = 0, False, 0

    def running(self):
        return [] if self._over else self.workers

    def listen(self, _timeout_s):
        if self._seen == self._stops_at:
            self._stop.set()
        self._seen += 1
        counts = next(self._looks, None)
        self._over = counts is None
        for worker, timeouts in zip(self.workers, counts or (), strict=False):
            worker.pulse = SimpleNamespace(timeouts=timeouts)

    def stop(self):
        self.stopped += 1


@pytest.mark.parametrize(
    ("looks", "stops_at", "closed_by", "timeouts", "at_the_end"),
    [
        ([(0, 0), (3, 4)], None, "schedule", 0, 7),
        ([(0, 0), (4, 0)], None, "schedule", 0, 0),
        ([(0, 0), (4, 5), (0, 0)], None, "silence", 9, 0),
        ([(0, 0), (4, 5)], 1, "silence", 9, 9),
        ([(0, 0), (0, 0), (4, 4)], 1, "caller", 0, 8),
        ([(4, 4), (4, 4)], 1, "silence", 8, 8),
    ],
)
def test_a_window_is_closed_by_what_came_first(looks, stops_at, closed_by, timeouts, at_the_end):
    """Each slot has to see two timeouts in a row. What comes after the window was closed does not count."""
    stop = threading.Event()
    pool = Pool(looks, stop, stops_at)
    assert _follow(pool, None, 0, None, stop) == (closed_by, timeouts)
    assert pool.stopped == (closed_by != "schedule")
    assert _last_timeouts(pool) == at_the_end


def test_the_schedule_of_an_open_loop_ends_it():
    stop = threading.Event()
    pool = Pool([(40, 40)], stop, schedule=OpenLoop(None))
    assert _follow(pool, None, 0, None, stop) == ("schedule", 0)
    assert (_last_timeouts(pool), pool.stopped) == (80, 0)
