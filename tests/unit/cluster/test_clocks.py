"""Clocks of load nodes: offsets made up, so that every sign and bound is known."""

import numpy as np
import pytest

from harness.cluster.clocks import Ping, fit

S, MS, US = 10**9, 10**6, 10**3


def ping(at, offset, there=100 * US, back=100 * US, thinks=20 * US):
    """To a node whose clock shows `offset` more; `at` is when it left."""
    received = at + there
    answered = received + thinks
    return Ping(at, received + offset, answered + offset, answered + back)


@pytest.mark.parametrize("offset", [0, 3000 * S, -7 * S, 10**17])
def test_an_even_way_shows_the_offset_itself(offset):
    line = fit([[ping(50 * S, offset)], [ping(60 * S, offset)]])
    assert line.offset_at(55 * S) == offset
    assert line.on_node(55 * S) == 55 * S + offset
    assert line.rtt_ns == 200 * US


@pytest.mark.parametrize("there", [0, 50 * US, 4 * MS])
def test_the_truth_lies_within_the_uncertainty_however_uneven_the_way(there):
    offset = -7 * S
    line = fit([[ping(at, offset, there=there, back=4 * MS - there)] for at in (50 * S, 60 * S)])
    assert abs(line.offset_at(55 * S) - offset) <= line.uncertainty_ns <= 2 * MS


def test_the_fastest_ping_of_a_burst_counts():
    slow = [ping(50 * S + i * MS, 3 * S, there=(i + 2) * MS) for i in range(99)]
    line = fit([[*slow, ping(50 * S, 3 * S)]])
    assert line.offset_at(50 * S) == 3 * S
    assert line.pings == 100
    assert line.uncertainty_ns == 100 * US


def test_a_clock_that_runs_faster_is_followed():
    ppm = 40
    pings = [[ping(at, 3000 * S + at * ppm // 10**6)] for at in range(50 * S, 61 * S, S)]
    line = fit(pings)
    assert line.drift * 1e6 == pytest.approx(ppm, rel=0.001)
    assert line.uncertainty_ns == 100 * US
    assert line.offset_at(70 * S) == pytest.approx(3000 * S + 70 * S * ppm // 10**6, abs=US)


def test_a_clock_that_jumped_between_is_not_known_better_than_that():
    bursts = [[ping(50 * S, 0)], [ping(55 * S, 10 * MS)], [ping(60 * S, 0)]]
    assert fit(bursts).uncertainty_ns > 3 * MS


@pytest.mark.parametrize("offset", [3000 * S, -7 * S])
def test_a_start_at_the_right_moment_moves_nothing(offset):
    line, t0 = fit([[ping(50 * S, offset)]]), 51 * S
    assert line.shift(t0, t0 + offset, np.array([0, 5 * S])).tolist() == [0, 0]


@pytest.mark.parametrize("offset", [3000 * S, -7 * S])
def test_a_late_start_moves_the_records_later(offset):
    line, t0 = fit([[ping(50 * S, offset)]]), 51 * S
    assert line.shift(t0, t0 + offset + 3 * MS, np.array([0, S])).tolist() == [3 * MS, 3 * MS]


def test_what_a_fast_clock_counts_too_much_is_taken_back():
    """After 10 s on its own clock, 100 ppm fast, only 9.999 s have passed here."""
    bursts = [[ping(at, at * 100 // 10**6)] for at in (50 * S, 70 * S)]
    line, t0 = fit(bursts), 50 * S
    moved = line.shift(t0, line.on_node(t0), np.array([10 * S]))
    assert moved[0] == pytest.approx(-MS, abs=2 * US)


def test_the_wrong_sign_would_be_seen():
    """The other way round a node 3,000 s ahead would be told a t0 that lies 6,000 s off."""
    offset, t0 = 3000 * S, 51 * S
    line = fit([[ping(50 * S, offset)]])
    assert abs(line.shift(t0, t0 - offset, np.array([0]))[0]) == 6000 * S
