"""The address that a URL leads to."""

from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


def port_of(url: str) -> int:
    """The port of an http or https URL: that of its scheme where it names none."""
    parts = urlsplit(url)
    return parts.port or _PORTS[parts.scheme]
