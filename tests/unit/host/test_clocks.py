"""Two clocks at one moment, by readings that the test sets."""

from types import SimpleNamespace

from harness.host import clocks
from harness.host.clocks import tightest


def read(monkeypatch, *readings, tries=5, enough_ns=2_000):
    """Each of them a monotonic time, a time of the other clock and a monotonic time, in ns."""
    left = [time for reading in readings for time in reading]
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic_ns=lambda: left.pop(0)))
    found = tightest(lambda: left.pop(0), tries, enough_ns)
    return found, len(left) // 3


def test_clocks_that_were_read_together_are_read_once(monkeypatch):
    assert read(monkeypatch, (1_000, 70_000, 1_200), (0, 0, 0)) == ((1_100, 70_000, 200), 1)


def test_what_came_between_them_is_no_age_of_a_stamp(monkeypatch):
    found, _ = read(monkeypatch, (0, 900_000, 900_100), (1_000_000, 1_001_000, 1_000_100))
    assert found == (1_000_050, 1_001_000, 100)


def test_of_moments_that_are_all_torn_the_tightest_counts(monkeypatch):
    torn = [(at, at + 1, at + 10_000) for at in (0, 100_000, 200_000, 300_000)]
    assert read(monkeypatch, *torn, (400_000, 400_001, 405_000)) == ((402_500, 400_001, 5_000), 0)


def test_where_no_width_is_enough_all_are_read(monkeypatch):
    found, left = read(
        monkeypatch, (0, 1, 20), (30, 31, 40), (50, 51, 60), (70, 71, 80), tries=3, enough_ns=0
    )
    assert (found, left) == ((35, 31, 10), 1)
