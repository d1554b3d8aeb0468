"""Beats that come late, on a clock that the test sets."""

import time

import pytest

from harness.host import heartbeat
from harness.host.heartbeat import Heartbeat, suspended_ns

MS = 1_000_000


@pytest.fixture
def clock(monkeypatch):
    """The time of CLOCK_MONOTONIC in ms, as a list of one number."""
    now = [0]
    monkeypatch.setattr(heartbeat.time, "monotonic_ns", lambda: now[0] * MS)
    return now


def beat_at(heart, clock, *moments):
    for moment in moments:
        clock[0] = moment
        heart.beat()


def test_only_beats_that_are_late_by_a_tenth_of_a_second_are_kept(clock):
    heart = Heartbeat(50 * MS)
    beat_at(heart, clock, 50, 199, 349, 400, 2500)
    # Due at 100, 249 and 450: late by 99, 100 and 2050 ms.
    assert heart.longest_ns == 2050 * MS
    assert heart.stalls(0) == ((249 * MS, 100 * MS), (450 * MS, 2050 * MS))
    assert heart.stalls(1000 * MS) == ((-751 * MS, 100 * MS), (-550 * MS, 2050 * MS))


def test_the_longest_are_kept_and_no_more_than_a_thousand(clock):
    heart = Heartbeat(50 * MS)
    moments, now = [], 0
    for number in range(1200):
        now += 50 + 100 + number  # each is late by one more
        moments.append(now)
    beat_at(heart, clock, *moments)
    lasted = [ns // MS for _, ns in heart.stalls(0)]
    assert lasted == list(range(300, 1300))


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the system has no CLOCK_BOOTTIME")
def test_time_in_suspend_is_what_boottime_is_ahead(clock, monkeypatch):
    clock[0] = 5_000
    monkeypatch.setattr(heartbeat.time, "clock_gettime_ns", lambda which: 7_500 * MS)
    assert suspended_ns() == 2_500 * MS


def test_a_system_that_does_not_count_it_says_so(monkeypatch):
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert suspended_ns() is None
