"""The address that a URL leads to."""

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def port_of(url: str) -> int:
    """The port of an http or https URL: that of its scheme where it names none."""
    parts = urlsplit(url)
    return parts.port or _PORTS[parts.scheme]


def origin_of(url: str) -> tuple[str, str, int]:
    """The scheme, host and port of an http or https URL: equal for two spellings of one server."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", port_of(url)


def is_loopback(host: str) -> bool:
    """Whether a client reaches its own machine under this host of a URL. Other names are not looked up."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return is_loopback(str(address.ipv4_mapped))
    return address.is_loopback or address.is_unspecified
