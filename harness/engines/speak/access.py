"""The access to a running server, with secrets of the environment filled in."""

import os
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from harness.errors import SpecError
from harness.host.access import Access
from harness.host.address import origin_of
from harness.host.helper_process import withhold
from harness.host.tls import Certificates
from harness.spec.reach import Given, Reach

DEFAULT_API_KEY_ENV = "BENCH_API_KEY"
_ANOTHER_WAY = "a gateway may want --header NAME=ENV:VAR"


def api_key(variable: str | None) -> str:
    """Reads the key from the environment only; "" when the default variable is not set.

    A variable named must be set.
    """
    withhold(variable or DEFAULT_API_KEY_ENV)
    if variable:
        return _variable(variable, "--api-key-env")
    return os.environ.get(DEFAULT_API_KEY_ENV, "")


def access_of(reach: Reach) -> Access:
    """Raises SpecError for a variable that is not set, and for a file of certificates that cannot be used."""
    key = api_key(reach.api_key_env)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    headers |= {given.name: _value(given, "--header") for given in reach.headers}
    query = {given.name: _value(given, "--query") for given in reach.query}
    hidden = [headers[given.name] for given in reach.headers if given.variable]
    hidden += [query[given.name] for given in reach.query if given.variable]
    credentials = dict.fromkeys(filter(None, [key, *hidden, *(text.rpartition(" ")[2] for text in hidden)]))
    certificates = Certificates(reach.ca_cert, reach.client_cert, reach.client_key)
    certificates.shared()  # reads them once, for the check and for the clients
    return Access(
        headers,
        "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()),
        certificates,
        tuple(credentials),
    )


def access_behind(url: str, urls: Sequence[str], reach: Reach) -> Access:
    """The access to an engine's own address. Headers and query are those of `urls`, its gateway's."""
    behind = origin_of(url) not in map(origin_of, urls)
    return access_of(replace(reach, headers=(), query=()) if behind else reach)


def key_hint(access: Access) -> str:
    """What may help where a server refuses what was sent, or that no key was."""
    if access.credentials:
        wrong = "it was sent a key: that one may be wrong, or not allowed to do this"
        another = "--api-key-env VAR names another variable, and NAME=VAR that of one of several servers"
        return f"{wrong}; {another}; {_ANOTHER_WAY}"
    return (
        f"put its API key into {DEFAULT_API_KEY_ENV}, or name another environment variable with "
        f"--api-key-env; {_ANOTHER_WAY}"
    )


def _value(given: Given, flag: str) -> str:
    if not given.variable:
        return given.text
    withhold(given.variable)
    where = f"{flag} {given.name}=ENV:{given.variable}"
    value = _variable(given.variable, where)
    if not value.isascii() or not value.isprintable():
        raise SpecError(f"the value of {given.variable} is not printable ASCII", where=where)
    return value


def _variable(name: str, where: str) -> str:
    if value := os.environ.get(name, ""):
        return value
    raise SpecError(f"environment variable {name} is not set", where=where)
