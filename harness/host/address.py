"""The address that a URL leads to."""

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def port_of(url: str) -> int:
    """The port of an http or https URL: that of its scheme where it names none."""
    parts = urlsplit(url)
    return parts.port or _PORTS[parts.scheme]


def is_loopback(host: str) -> bool:
    """Whether a client reaches its own machine under this host of a URL. Other names are not looked up."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return is_loopback(str(address.ipv4_mapped))
    return address.is_loopback or address.is_unspecified
