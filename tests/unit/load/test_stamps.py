"""The map from kernel stamps to the monotonic clock, on made-up clocks."""

import errno
import select
import socket
import struct
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.load import stamps
from harness.load.socket_checks import SocketChecks
from harness.load.stamps import TOLERANCE_NS, StampClock, bound, bounded

_REAL = 1_800_000_000_000_000_000
_OFFSET = 1_799_999_000_000_000_123


def stamp(real: int) -> bytes:
    return struct.pack("=qq", *divmod(real, 1_000_000_000))


def clock_of(*samples: tuple[int, int, int]) -> StampClock:
    clock = StampClock()
    for real, offset, width in samples:
        clock.add_sample(real=real, offset=offset, width=width)
    return clock


@given(st.integers(0, 10**12))
def test_a_steady_clock_maps_to_the_nanosecond(since: int) -> None:
    clock = clock_of((_REAL, _OFFSET, 80), (_REAL + 10**12, _OFFSET, 60))
    mapped = clock.to_monotonic_many([stamp(_REAL + since)])
    assert mapped.tolist() == [_REAL + since - _OFFSET]
    assert clock.to_monotonic(stamp(_REAL + since)) == _REAL + since - _OFFSET
    assert clock.uncertainty_ns() == 40


def test_a_slewed_clock_is_followed_between_samples() -> None:
    clock = clock_of((_REAL, _OFFSET, 2), (_REAL + 1000, _OFFSET + 100, 2))
    mapped = clock.to_monotonic_many([stamp(_REAL + 500), stamp(_REAL + 1000)])
    assert mapped.tolist() == [_REAL + 500 - _OFFSET - 50, _REAL + 1000 - _OFFSET - 100]


def test_a_step_shows_in_the_uncertainty() -> None:
    clock = clock_of((_REAL, _OFFSET, 80), (_REAL + 10**9, _OFFSET + 5_000_000, 80))
    assert clock.uncertainty_ns() == 5_000_040


def test_a_step_back_keeps_the_map_usable() -> None:
    clock = clock_of((_REAL, _OFFSET, 2), (_REAL - 10**9, _OFFSET - 10**9, 2))
    assert clock.uncertainty_ns() > 10**9 - 1
    assert np.all(np.diff(clock.to_monotonic_many([stamp(_REAL - 5), stamp(_REAL - 4)])) > 0)


def test_order_is_kept_over_many_samples() -> None:
    clock = clock_of(*((_REAL + i * 10**8, _OFFSET + i % 3, 100) for i in range(50)))
    stamps = [stamp(_REAL + i * 10**7) for i in range(500)]
    assert np.all(np.diff(clock.to_monotonic_many(stamps)) > 0)


def test_a_step_beyond_slewing_is_told() -> None:
    slewed = clock_of((_REAL, _OFFSET, 80), (_REAL + 50_000_000, _OFFSET + 25_000, 80))
    assert slewed.step_ns == 0
    for step in (-500_000_000, 300_000):
        stepped = clock_of((_REAL, _OFFSET, 80), (_REAL + 50_000_000 + step, _OFFSET + step, 80))
        assert abs(step) - 26_000 < stepped.step_ns <= abs(step)


def test_stamps_are_bounded_by_what_the_sockets_showed() -> None:
    looks = [[0, 0, 50], [100, 100, 250], [200, 280, 300], [300, 300, 400]]
    times = np.array([40, 90, 150, 999], np.int64)
    kept, moved = bounded(times, looks, sent=45)
    assert kept.tolist() == [45, 100, 280, 400]  # the send; the look before; when it woke; when it was read
    assert moved == 0
    assert [bound(time, look, 45, 9999) for time, look in zip(times.tolist(), looks, strict=True)] == [
        45,
        100,
        280,
        999,
    ]
    far = np.array([-10 * TOLERANCE_NS, 20 * TOLERANCE_NS], np.int64)
    assert bounded(far, looks[:2], sent=0)[1] == 2


def test_a_look_bounds_what_is_read_after_it() -> None:
    here, there = socket.socketpair()
    poller = select.epoll()
    with here, there, poller:
        poller.register(here.fileno(), select.POLLIN)
        looks = SocketChecks(poller)
        assert looks.poll() == []
        before = time.monotonic_ns()
        assert looks.poll() == []
        there.send(b"x")
        assert looks.poll()
        empty, floor, _ = looks.current
        assert before <= empty == floor <= time.monotonic_ns()
        assert looks.poll()  # still not read: it came after the same look
        assert looks.current[0] == empty
        here.recv(1)
        looks.emptied()
        there.send(b"y")
        assert looks.poll()
        assert looks.current[0] > empty


def test_a_look_that_slept_woke_when_something_came() -> None:
    here, there = socket.socketpair()
    poller = select.epoll()
    with here, there, poller:
        poller.register(here.fileno(), select.POLLIN)
        looks = SocketChecks(poller)
        looks.poll()
        timer = threading.Timer(0.05, there.send, (b"x",))
        timer.start()
        assert looks.poll(1.0)
        timer.join()
        empty, floor, _ = looks.current
        assert floor - empty > 40_000_000


def test_a_sandbox_that_knows_no_stamps_is_a_kernel_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> bool:
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    monkeypatch.setattr(stamps, "_stamped_over_loopback", refuse)
    assert stamps.kernel_stamps_work() is False
