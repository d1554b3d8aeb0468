"""The map from kernel stamps to the monotonic clock, on made-up clocks."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.load.stamps import StampClock

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
