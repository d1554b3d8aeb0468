"""What counts as lost of a request, by the kernel's counters of its connection."""

import struct
from unittest.mock import Mock

import pytest

from harness.host.resolve import Address
from harness.load.connection import Connection
from harness.load.exchange import Exchange
from harness.load.route import Route
from harness.records.layout import UNKNOWN


def counted(sent_again: int, had_before: int) -> bytes:
    """`struct tcp_info` of linux/tcp.h: tcpi_total_retrans and tcpi_dsack_dups, the rest zero."""
    data = bytearray(248)
    struct.pack_into("=I", data, 100, sent_again)
    struct.pack_into("=I", data, 216, had_before)
    return bytes(data)


@pytest.mark.parametrize(
    ("counters", "lost"),
    [
        ([(0, 0), (0, 0)], [0]),
        ([(0, 0), (2, 0)], [2]),
        ([(0, 0), (1, 1)], [0]),  # sent again because the peer was slow to acknowledge it
        ([(0, 0), (3, 1)], [2]),
        ([(0, 0), (1, 0), (1, 1)], [1, 0]),  # the peer says so only after the answer
    ],
)
def test_a_segment_that_the_peer_had_already_was_not_lost(
    counters: list[tuple[int, int]], lost: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    kept = iter(counters)
    sock = Mock()
    sock.getsockopt.side_effect = lambda _level, _option, size: counted(*next(kept))[:size]
    connection = Connection(sock, 0, Route(Address(2, ("127.0.0.1", 1)), "127.0.0.1", None), 0, kernel=False)
    connection.count_loss(Exchange(0, 0))
    exchanges = [Exchange(0, 0) for _ in lost]
    for exchange in exchanges:
        assert exchange.retransmits == UNKNOWN
        connection.count_loss(exchange)
    assert [exchange.retransmits for exchange in exchanges] == lost
