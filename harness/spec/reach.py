"""Flags that say how to reach a running server: they name where a secret is, and never hold one."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.errors import SpecError
from harness.spec import files

if TYPE_CHECKING:
    from harness.spec.backend import BackendRef

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BY_BENCH = frozenset(
    "accept-encoding connection content-length content-type host te transfer-encoding upgrade".split()
)
_SECRET_NAME = re.compile("key|token|secret|passw|credential|auth|cookie|signature|^(sig|code|pwd)$", re.I)
_SECRET_VALUE = re.compile(r"(bearer|basic)\s|sk-|ey[A-Za-z0-9_-]+\.", re.I)


@dataclass(frozen=True, slots=True)
class Given:
    """A header, or a parameter of the query, with its value or the variable that holds it."""

    name: str
    text: str = ""
    variable: str = ""  # of the environment, which holds the value; "": `text` is the value


@dataclass(frozen=True, slots=True)
class Reach:
    """Headers, keys and certificates for requests to one backend. Files are in PEM; "": none."""

    api_key_env: str | None = None
    served_name: str | None = None  # what the server, or the gateway in front of it, calls the model
    headers: tuple[Given, ...] = ()
    query: tuple[Given, ...] = ()
    ca_cert: str = ""
    client_cert: str = ""
    client_key: str = ""


@dataclass(frozen=True, slots=True)
class ReachFlags:
    """Flags as typed: each `[BACKEND=]VALUE`, those of the first two separated by commas."""

    api_key_env: str | None = None
    served_name: str | None = None
    headers: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    ca_cert: tuple[str, ...] = ()
    client_cert: tuple[str, ...] = ()
    client_key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Flag:
    """One flag with everything that was given for it."""

    name: str
    texts: Sequence[str]
    labels: Sequence[str]

    def value(self, owners: Sequence[str]) -> str:
        """The value for the last of these labels that has its own, else the one for all.

        Raises SpecError if given twice.
        """
        found = ""
        for given in self._of(owners):
            if len(given) > 1:
                raise SpecError("is given twice", where=self.name, hint=f"write {self.name} BACKEND=…")
            found = given[0] if given else found
        return found

    def by_name(self, owners: Sequence[str], parse: Callable[[str, str], Given]) -> tuple[Given, ...]:
        """The same for each name of a header or parameter."""
        found: dict[str, Given] = {}
        for given in self._of(owners):
            parsed = [parse(text, self.name) for text in given]
            named = {entry.name: entry for entry in parsed}
            if len(named) < len(parsed):
                raise SpecError("is given twice", where=f"{self.name} {parsed[-1].name}")
            found |= named
        return tuple(found.values())

    def _of(self, owners: Sequence[str]) -> Iterator[list[str]]:
        """Values given for all backends, then those of each of these labels.

        Raises SpecError for an empty value, and for a known backend that is not among the labels.
        """
        for owner in dict.fromkeys(("", *owners)):
            front = f"{owner}=" if owner else ""
            mine = [text for text in self.texts if _label_before(text, self.labels) == owner]
            given = [text.removeprefix(front) for text in mine]
            if "" in given:
                raise SpecError("needs a value", where=self.name)
            if not owner:
                self._check_no_other_backend(given)
            yield given

    def _check_no_other_backend(self, given: Sequence[str]) -> None:
        known = files.names("backends") if given else ()
        for other, equals, rest in (text.partition("=") for text in given):
            whole = self.name in ("--header", "--query") and "=" not in rest  # NAME=VALUE
            if equals and not whole and other.partition("@")[0] in known:
                fronts = " or ".join(f"{label}=" for label in self.labels)
                then = (
                    f"begin the value with {fronts}"
                    if fronts
                    else f"leave '{other}=' out: only `bench run` has a value for one backend"
                )
                raise SpecError(f"'{other}' is not one of the backends", where=self.name, hint=then)


def reach_of(flags: ReachFlags, owners: Sequence[str] = (), labels: Sequence[str] = ()) -> Reach:
    """Reads the flags for the backend that has the labels `owners`, of which the last goes before the others;
    without any, those for all. Raises SpecError.
    """
    flag = {name: _Flag(name, texts, labels) for name, texts in _by_flag(flags)}
    key = flag["--api-key-env"].value(owners)
    reach = Reach(
        api_key_env=_variable(key, "--api-key-env") if key else None,
        served_name=flag["--model-name"].value(owners) or None,
        headers=flag["--header"].by_name(owners, _header),
        query=flag["--query"].by_name(owners, _given),
        ca_cert=flag["--ca-cert"].value(owners),
        client_cert=flag["--client-cert"].value(owners),
        client_key=flag["--client-key"].value(owners),
    )
    if reach.client_key and not reach.client_cert:
        raise SpecError("needs --client-cert", where=f"--client-key {reach.client_key}")
    return reach


def with_reach(
    refs: "Sequence[BackendRef]", labels: Sequence[str], flags: ReachFlags, names: Sequence[str] = ()
) -> "tuple[BackendRef, ...]":
    """Adds to each backend what the flags give its label, or its name in `names`: several may share one.

    Only the variable of a key goes to backends that bench starts. Raises SpecError if another flag has no
    running server to go to.
    """
    names = names or labels
    known = tuple(dict.fromkeys((*names, *labels)))
    key = ReachFlags(api_key_env=flags.api_key_env)
    for flag, texts in _by_flag(replace(flags, api_key_env=None)):
        for text in texts:
            prefix = _label_before(text, known)
            owners = zip(refs, names, labels, strict=True)
            addressed = [ref for ref, *called in owners if prefix in ("", *called)]
            if not any(ref.url for ref in addressed):
                hint = f"give the backend as {replace(addressed[0], version=None).label}=URL"
                raise SpecError("is for a running server", where=flag, hint=hint)
    return tuple(
        replace(ref, reach=reach_of(flags if ref.url else key, called, known))
        for ref, *called in zip(refs, names, labels, strict=True)
    )


def _by_flag(flags: ReachFlags) -> Iterator[tuple[str, Sequence[str]]]:
    """Each flag with what was given for it."""
    yield "--api-key-env", _listed(flags.api_key_env)
    yield "--model-name", _listed(flags.served_name)
    yield "--header", flags.headers
    yield "--query", flags.query
    yield "--ca-cert", flags.ca_cert
    yield "--client-cert", flags.client_cert
    yield "--client-key", flags.client_key


def _listed(text: str | None) -> list[str]:
    return [] if text is None else text.split(",")


def _label_before(text: str, labels: Sequence[str]) -> str:
    """The label before the first `=` of a flag's value; "" if the value is for all backends."""
    return max((label for label in labels if text.startswith(f"{label}=")), key=len, default="")


def _variable(text: str, where: str) -> str:
    label, _, name = text.rpartition("=")
    if label:
        raise SpecError(f"'{label}' is not one of the backends", where=where)
    if not _VARIABLE.fullmatch(name):
        raise SpecError("is not the name of an environment variable", where=where)
    return name


def _header(text: str, where: str) -> Given:
    given = _given(text, where)
    if given.name.lower() in _BY_BENCH:
        raise SpecError(f"'{given.name}' is set by bench itself", where=where)
    if not given.text.isascii() or not given.text.isprintable():
        raise SpecError("a value is printable ASCII", where=f"{where} {given.name}")
    return replace(given, name=given.name.lower())


def _given(text: str, where: str) -> Given:
    """Parses NAME=VALUE or NAME=ENV:VAR. Raises SpecError for a value that looks like a secret.

    Every user of the machine can read a command line, and the run folder keeps it.
    """
    name, _, value = text.partition("=")
    if not _NAME.fullmatch(name) or not value:  # and not shown: "Authorization: Bearer …" may stand there
        hint = "such as X-Team=search, or Authorization=ENV:VAR with the secret in the variable VAR"
        raise SpecError("is not NAME=VALUE or NAME=ENV:VAR", where=where, hint=hint)
    if value.startswith("ENV:"):
        return Given(name, variable=_variable(value.removeprefix("ENV:"), f"{where} {name}"))
    if "=ENV:" in value:
        raise SpecError(f"'{name}' is not one of the backends", where=where)
    if _SECRET_NAME.search(name) or _SECRET_VALUE.match(value):
        raise SpecError(
            "looks like a secret, and a command line can be read by every user of this machine",
            where=f"{where} {name}",
            hint=f"put the value into an environment variable and write {where} {name}=ENV:VAR",
        )
    return Given(name, value)
