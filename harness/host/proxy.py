"""The proxy that the environment names, in the forms that other programs take."""

import os
import urllib.request
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import ip_address, ip_network

import httpx

from harness.errors import SetupError
from harness.host.address import is_loopback

_KINDS = ("http://", "https://", "socks5://", "socks5h://")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for this URL, with its scheme; loopback never takes one.

    Raises SetupError for one that requests cannot be sent through.
    """
    variable = _variable(url)
    if variable is None:
        return None
    named = urllib.request.getproxies()[variable]
    try:
        proxy = httpx.URL(named if "://" in named else f"http://{named}")  # as curl reads it
    except httpx.InvalidURL:  # whose text may quote a password
        proxy = httpx.URL()
    if not proxy.host or not str(proxy).startswith(_KINDS):
        raise _refused(f"must be HOST:PORT of a proxy, after {', '.join(_KINDS)} or nothing", url)
    return str(proxy)


def require_socks(url: str) -> None:
    """Raises SetupError where the proxy for this URL is one of SOCKS and httpx lacks what it needs for it."""
    if (proxy_for(url) or "").startswith("socks") and find_spec("socksio") is None:
        what = "names a SOCKS proxy, which needs the package socksio"
        raise _refused(what, url, "pip install 'httpx[socks]', or ")


def _variable(url: str) -> str | None:
    """The variable that counts for this URL, without `_proxy`."""
    target, proxies = httpx.URL(url), urllib.request.getproxies()
    if is_loopback(target.host) or urllib.request.proxy_bypass(target.host) or _in_network(target.host):
        return None
    return next((name for name in (target.scheme, "all") if proxies.get(name)), None)


def _in_network(host: str) -> bool:
    """Whether NO_PROXY has a network with this address, such as 10.0.0.0/8: curl reads these, Python does
    not.
    """
    with suppress(ValueError):  # a name
        address = ip_address(host)
        for entry in urllib.request.getproxies().get("no", "").split(","):
            with suppress(ValueError):  # no network
                if "/" in entry and address in ip_network(entry.strip(), strict=False):
                    return True
    return False


def way_round(url: str) -> str:
    """What to do about a proxy that does not reach this URL; "" where none is taken."""
    variable = _variable(url)
    return f"{_in_environment(variable)} names a proxy: {_around(url)}" if variable else ""


def _around(url: str) -> str:
    return f"set NO_PROXY={httpx.URL(url).host} to send straight to the server"


def _in_environment(variable: str) -> str:
    wanted = f"{variable}_proxy"
    return next((name for name in os.environ if name.lower() == wanted), wanted)


def _refused(what: str, url: str, first: str = "") -> SetupError:
    return SetupError(what, where=_in_environment(_variable(url) or ""), hint=f"{first}{_around(url)}")
