"""Both clocks of the server at one moment."""

from types import SimpleNamespace

from harness.mockserver import connection


def clocks(monkeypatch, *readings):
    """Each of them a monotonic time, a wall-clock time and a monotonic time, in ns."""
    told = [time for reading in readings for time in reading]
    monkeypatch.setattr(
        connection, "time", SimpleNamespace(monotonic_ns=lambda: told.pop(0), time_ns=lambda: told.pop(0))
    )
    return told


def test_clocks_that_were_read_together_are_read_once(monkeypatch):
    left = clocks(monkeypatch, (1_000, 70_000, 1_200), (0, 0, 0))
    assert connection.both_clocks_ns() == (1_100, 70_000)
    assert len(left) == 3


def test_what_came_between_them_is_no_age_of_a_stamp(monkeypatch):
    clocks(monkeypatch, (0, 900_000, 900_100), (1_000_000, 1_001_000, 1_000_100))
    assert connection.both_clocks_ns() == (1_000_050, 1_001_000)


def test_of_moments_that_are_all_torn_the_tightest_counts(monkeypatch):
    torn = [(at, at + 1, at + 10_000) for at in (0, 100_000, 200_000, 300_000)]
    clocks(monkeypatch, *torn, (400_000, 400_001, 405_000))
    assert connection.both_clocks_ns() == (402_500, 400_001)
