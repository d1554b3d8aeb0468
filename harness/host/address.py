"""The address that a URL leads to."""

import socket
from contextlib import closing
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_HERE = ("localhost", "127.0.0.1", "::1")  # names of one server, as nearly every server listens


def port_of(url: str) -> int:
    """The port of an http or https URL: that of its scheme where it names none."""
    parts = urlsplit(url)
    return parts.port or _PORTS[parts.scheme]


def origin_of(url: str) -> tuple[str, str, int]:
    """The scheme, host and port of an http or https URL: equal for two spellings of one server."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme, _HERE[0] if host in _HERE else host, port_of(url)


def address_of(url: str) -> tuple[str, str, int, str]:
    """The origin and the path: equal for two spellings of one address."""
    return *origin_of(url), urlsplit(url).path


def is_loopback(host: str) -> bool:
    """Whether a client reaches its own machine under this host of a URL. Other names are not looked up."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return is_loopback(str(address.ipv4_mapped))
    return address.is_loopback or address.is_unspecified


def is_own(host: str) -> bool:
    """Whether the host of a URL is this machine, by loopback or by an address of its own. Names other than
    `localhost` and the machine's own are not looked up.
    """
    if is_loopback(host) or host == socket.gethostname():
        return True
    try:
        family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        return False
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as own:
        try:
            own.bind((host, 0))  # sends nothing; only an address of this machine can be bound
        except OSError:
            return False
    return True
