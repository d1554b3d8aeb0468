"""The kernel's counters of one TCP connection: getsockopt(TCP_INFO), Linux 5.4 and later."""

import socket
import struct
import sys
from typing import NamedTuple

# struct tcp_info of linux/tcp.h: tcpi_total_retrans at 100, tcpi_bytes_acked at 120, tcpi_dsack_dups at 216,
# tcpi_rcv_ooopack at 224.
_FIELDS = struct.Struct("=100xI16xQ88xI4xI")


class TcpInfo(NamedTuple):
    """Counts since the connection was made."""

    retransmits: int  # segments sent again, less those that the peer says it had: nothing was lost
    bytes_acked: int  # of what we sent; the peer's kernel has them
    out_of_order: int  # segments received ahead of a missing one


def read_tcp_info(sock: socket.socket) -> TcpInfo | None:
    """None where the kernel does not tell."""
    if sys.platform != "linux":
        return None
    try:
        data = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _FIELDS.size)
    except OSError:
        return None
    if len(data) < _FIELDS.size:
        return None
    sent_again, bytes_acked, had_before, out_of_order = _FIELDS.unpack(data)
    return TcpInfo(sent_again - had_before, bytes_acked, out_of_order)
