"""A port to serve on."""

import errno
import socket
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import psutil

from harness.errors import SetupError

# Above the ports of Ray's workers (to 19,999), below those of Kubernetes' services (from 30,000).
_FIRST, _LAST = 20_000, 29_999
_TRIES = 20
_GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")  # from 32,768 on by default


def free_port(host: str, other_than: int = 0) -> int:
    """A free port outside the ephemeral range, if there is one.

    `other_than`: one that is given away already, and not bound yet.

    An engine may bind it a minute later, and the system hands out ephemeral ports meanwhile.
    """
    for port in _others():
        if port != other_than:
            with suppress(OSError):
                return _bound(host, port)
    try:
        return _bound(host, 0)
    except OSError as error:
        raise SetupError(
            f"this machine has no address {host}: {error.strerror}",
            where=host,
            hint="`ip address` lists those it has",
        ) from None


def _others() -> list[int]:
    """Some ports that the system does not give, in no order: several of `bench` may look for one."""
    end = _LAST + 1
    with suppress(OSError, ValueError, IndexError):
        end = min(end, int(_GIVEN.read_text(encoding="ascii").split()[0]))
    ports = range(_FIRST, end)
    return SystemRandom().sample(ports, min(_TRIES, len(ports)))


def _bound(host: str, port: int) -> int:
    with socket.socket() as probe:
        probe.bind((host, port))
        bound: int = probe.getsockname()[1]
        return bound


def check_port(host: str, port: int) -> None:
    """Raises SetupError naming the port and, where the system tells, the process that holds it."""
    if not 0 < port < 65536:
        raise SetupError(f"{port} is not a port number", where=f"{host}:{port}")
    with socket.socket() as probe:
        # As servers do: connections of an earlier server that are still closing do not prevent it.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            owner = _owner(port)
            raise SetupError(
                f"port {port} is taken{f' by {owner}' if owner else ''}"
                if owner or error.errno == errno.EADDRINUSE
                else f"port {port} cannot be used: {error.strerror}",
                where=f"{host}:{port}",
                hint="stop that process, or leave the port out to have a free one chosen",
            ) from None


def _owner(port: int) -> str | None:
    """`name (pid N)` of the process listening on `port`; None where the system does not say."""
    with suppress(psutil.Error, OSError):  # ended meanwhile, or may not be read
        for connection in psutil.net_connections("tcp"):
            here = connection.laddr and connection.laddr.port == port
            if here and connection.status == psutil.CONN_LISTEN and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return None
