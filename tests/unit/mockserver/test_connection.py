"""Answers whose client leaves."""

from types import SimpleNamespace

import pytest

from harness.mockserver.connection import Connection
from harness.mockserver.ledger import Ledger, Record
from harness.mockserver.script import Then, Write


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
    serving = Connection(sock, loop, Ledger(), lambda *_: None, finishes_abandoned=True)
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
