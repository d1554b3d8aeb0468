"""Both clocks of the server at one moment, and answers whose client leaves."""

from types import SimpleNamespace

import pytest

from harness.mockserver import connection
from harness.mockserver.ledger import Ledger, Record
from harness.mockserver.script import Then, Write


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


class Left:
    """A socket whose client has reset the connection."""

    def recvmsg(self, *_sizes):
        raise ConnectionResetError

    def send(self, _data):
        raise ConnectionResetError

    def close(self):
        pass


def served(*writes, sock, at):
    """A connection that plays these writes, the record of its request, and the times of its end."""
    ends, record = [], Record(0, "/v1/chat/completions", 1, 1, planned_tokens=3)
    loop = SimpleNamespace(on_readable=lambda *_: None, forget=lambda _: None, at=lambda _, step: at(step))
    serving = connection.Connection(sock, loop, Ledger(), lambda *_: None, finishes_abandoned=True)
    serving.expect(record, ends.append)
    serving.play(iter(writes), 0)
    return serving, record, ends


TOKEN = Write(0, b"x", 1, 1)


@pytest.mark.parametrize("first", ["read", "write"])
@pytest.mark.parametrize("then", [Then.END, Then.CLOSE, Then.RESET, Then.HANG])
def test_an_answer_that_goes_on_without_its_client_ends_as_it_would_have(first, then):
    """A client that resets the connection may be noticed by a write ahead of any read."""
    due = []
    serving, record, ends = served(TOKEN, TOKEN, TOKEN._replace(then=then), sock=Left(), at=due.append)
    if first == "read":
        serving._readable()
    while due:
        due.pop()()
    assert (record.outcome, record.tokens, len(ends)) == ("aborted", 3, 1)


def test_a_stall_ends_when_its_client_leaves():
    sock = Left()
    sock.send = len
    serving, record, ends = served(TOKEN._replace(then=Then.HANG), sock=sock, at=lambda step: step())
    assert not ends
    serving._readable()
    assert (record.outcome, len(ends)) == ("faulted", 1)
