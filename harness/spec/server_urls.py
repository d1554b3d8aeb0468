"""Addresses of running servers, as they are given on the command line."""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from harness.errors import SpecError
from harness.host.address import address_of
from harness.model.choices import ROLES
from harness.spec.backend import BackendRef
from harness.spec.strict import nearest

_HOST = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(:\d+)?(/[^/].*)?")  # of a URL whose scheme was left out

MOST_URLS = 64  # each has connections and a sampler's reads of its own


def server_urls(text: str, where: str) -> str:
    """Normalises `URL[+URL…]` with `server_url`. A + that belongs to a path is written %2B."""
    given = text.split("+")
    if "" in given:
        raise SpecError("a URL is missing before or after '+'", where=where, hint="write URL+URL")
    if len(given) > MOST_URLS:
        raise SpecError(f"{len(given)} URLs; at most {MOST_URLS}", where=where)
    urls = [server_url(url, where) for url in given]
    addresses = list(map(address_of, urls))
    if twice := next((url for url in urls if addresses.count(address_of(url)) > 1), None):
        raise SpecError(f"{twice} is given twice", where=where, hint="each URL is a server of its own")
    return "+".join(urls)


def server_url(url: str, where: str) -> str:
    """Drops the `/v1` that clients of the API are usually given.

    Raises SpecError for anything but the address of a server, and for a password, which would be stored.
    """
    try:
        parts = urlsplit(url)
        fits = parts.port != 0 and not re.search(r"[\s,]", url)
    except ValueError:
        fits = False
    if not fits:
        shown = url.rpartition("@")[2]
        bare = re.match(r"(\w+://)?[\da-fA-F]*:[\da-fA-F]*:", shown)
        hint = "an IPv6 address stands in brackets, as in http://[::1]:8000" if bare else None
        raise SpecError(f"{shown!r} is not a URL", where=where, hint=hint)
    if parts.username or parts.password:
        raise SpecError(
            "the URL holds a user name or password",
            where=where,
            hint="--header Authorization=ENV:VAR, the variable with `Basic` and the base64 of user:password",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = url.rpartition("@")[2]  # a password may stand before it
        host = f"127.0.0.1:{url}" if url.isdecimal() else shown
        hint = f"write http://{host}" if _HOST.fullmatch(host) else ""
        raise SpecError(f"'{shown}' is not an http:// or https:// URL", where=where, hint=hint)
    if parts.query or parts.fragment:
        hint = "--query NAME=VALUE adds to the query of each request" if parts.query else ""
        raise SpecError("the URL must be a server's address, without '?' or '#'", where=where, hint=hint)
    base = url.rstrip("/").removesuffix("/chat/completions")
    if base != url.rstrip("/") and not base.endswith("/v1"):
        raise SpecError(
            f"'{url}' has no /v1 before /chat/completions",
            where=where,
            hint=f"{base} for {base}/v1/chat/completions; another path: dialect.chat_path of a definition",
        )
    return base.removesuffix("/v1")


def with_metrics_urls(
    refs: Sequence[BackendRef], labels: Sequence[str], given: Sequence[str], names: Sequence[str] = ()
) -> tuple[BackendRef, ...]:
    """Adds each `[BACKEND=][ROLE@]URL` of --metrics-url to its backend, or to the only one.

    A backend goes by its label and by its name in `names`, which several may share. Raises SpecError.
    """
    names = names or labels
    for text in given:
        where = f"--metrics-url {text.partition('?')[0]}"  # a query may hold a key
        label, role, url = metrics_url(text)
        if not label and len(set(names)) > 1:
            raise SpecError(
                "several backends: whose metrics are these?", where=where, hint="write BACKEND=URL"
            )
        if label and label not in (*labels, *names):
            raise SpecError(f"'{label}' is not one of the backends", where=where, hint=nearest(label, labels))
        url = server_url(url, where)
        refs = [
            _with_metrics_url(ref, url, role, where) if label in ("", *called) else ref
            for ref, *called in zip(refs, labels, names, strict=True)
        ]
    for ref in refs:
        if lacking := [role for role in ROLES if ref.metrics_roles and role not in ref.metrics_roles]:
            hint = f"--metrics-url {lacking[0]}@URL"
            raise SpecError(f"no engine has the role '{lacking[0]}'", where="--metrics-url", hint=hint)
    return tuple(refs)


def metrics_url(text: str) -> tuple[str, str, str]:
    """The backend and the role that a --metrics-url names, "" for what it does not, and its URL."""
    bare = text.startswith(("http://", "https://", *(f"{role}@" for role in ROLES)))
    label, _, url = ("", "", text) if bare else text.partition("=")
    role, at, rest = url.partition("@")
    return (label, role, rest) if at and role in ROLES else (label, "", url)


def _with_metrics_url(ref: BackendRef, url: str, role: str, where: str) -> BackendRef:
    if not ref.url:
        hint = f"give the backend as {replace(ref, version=None).label}=URL"
        raise SpecError("is for a running server", where=where, hint=hint)
    if ref.definition.metrics is None:
        raise SpecError(
            f"backend '{ref.label}' declares no metrics to look for",
            where=where,
            hint="no engine was recognised: `bench run --backends NAME=vllm=URL` says which it is",
        )
    usual = ref.definition.metrics.path  # of a URL without one
    pages = [address_of(at if urlsplit(at).path else at + usual) for at in (url, *ref.metrics_urls)]
    if pages[0] in pages[1:]:
        raise SpecError("is given twice", where=where, hint="its counters would be summed twice")
    if bool(role) != bool(ref.metrics_roles) and ref.metrics_urls:
        raise SpecError(
            "some have a role, and some have none", where=where, hint="write prefill@URL or decode@URL each"
        )
    roles = (*ref.metrics_roles, role) if role else ()
    return replace(ref, metrics_urls=(*ref.metrics_urls, url), metrics_roles=roles)
