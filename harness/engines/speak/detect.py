"""Finds the definition that describes a running server, by what its declared pages answer."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Literal

from harness.client.answer import Answer
from harness.client.client import Client
from harness.client.limits import Limits
from harness.engines.speak.prometheus import totals
from harness.errors import SetupError
from harness.host.access import Access
from harness.model.json_path import value_at
from harness.spec import files
from harness.spec.backend import Backend, Probe
from harness.spec.backend_refs import load_backend
from harness.spec.engine_metrics import Metrics

Ask = Callable[[str], Answer | None]  # path -> what the server answers with 2xx

_PAGE = Limits(total_s=5.0)
_ALL_PAGES_S = 20.0  # a server that lets every page hang is not asked for them all


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that a definition says its engine answers: a key of a JSON page, or a Prometheus series."""

    path: str
    kind: Literal["key", "series"]
    name: str

    @classmethod
    def of(cls, probe: Probe) -> "Mark":
        return cls(probe.path, "key", probe.key)

    def holds(self, answer: Answer | None) -> bool:
        if answer is None:
            return False
        if self.kind == "series":
            return bool(totals(answer.figures, [self.name]))
        return value_at(answer.document_or_none(), self.name) is not None


@dataclass(frozen=True, slots=True)
class Recognised:
    name: str  # of the definition
    seen: tuple[str, ...]  # pages that answered as it declares


def recognise(url: str, access: Access, named: Backend | None = None) -> Recognised | None:
    """None: its answers fit no definition, or several equally well; or it may give any answers, since a front
    passes on those of the engines behind it.

    `named`: the definition that the user calls it by.
    """
    if named and (named.backend.kind in ("front", "hosted") or named.facts is None):
        return None
    ends = time.monotonic() + _ALL_PAGES_S
    with closing(Client(url, access)) as client:

        def ask(path: str) -> Answer | None:
            if time.monotonic() >= ends:
                return None
            try:
                answer = client.ask("GET", path, limits=_PAGE)
            except SetupError:
                return None
            return answer if answer.ok else None

        names = files.names("backends")
        return best(ask, [load_backend(name) for name in names], named)


_NOWHERE = "/no-engine-has-this-path"


def best(ask: Ask, definitions: Sequence[Backend], named: Backend | None = None) -> Recognised | None:
    """The definition `named` if it fits, or if it is a fork of the one that fits best; else the latter, which
    has the most marks that hold.

    One mark alone is too little where others declare it too: half a dozen engines have a /version. Between
    equals wins the only one that was written with the real server at hand: forks answer as their origin does.
    """
    real = [definition for definition in definitions if not definition.backend.simulated]
    declared = {definition.name: _marks(definition) for definition in real}
    shared = Counter(mark for marks in declared.values() for mark in marks)
    pages = {path: ask(path) for path in sorted({mark.path for mark in shared})}
    anywhere = ask(_NOWHERE)  # a mark that this page has too says nothing: any path is answered so
    held = {mark for mark in shared if mark.holds(pages[mark.path]) and not mark.holds(anywhere)}
    matches = {definition.name: declared[definition.name] & held for definition in real}
    fit = [
        definition
        for definition in real
        if (len(matches[definition.name]) > 1 or any(shared[mark] == 1 for mark in matches[definition.name]))
        and (definition.server.version is None or Mark.of(definition.server.version) in held)
        and ask(definition.server.ready_path) is not None
    ]
    most = max((len(matches[definition.name]) for definition in fit), default=0)
    equals = [definition for definition in fit if len(matches[definition.name]) == most]
    seen = [definition for definition in equals if definition.facts and not definition.facts.not_run]
    chosen = equals if len(equals) == 1 else seen
    chosen = [definition for definition in fit if named and definition.name == named.name] or chosen
    if len(chosen) != 1:
        return None
    name = chosen[0].name
    paths = tuple(sorted({mark.path.partition("?")[0] for mark in matches[name]}))
    return Recognised(named.name if named and named.backend.simulator == name else name, paths)


def _marks(definition: Backend) -> frozenset[Mark]:
    server = definition.server
    keys = [Probe(info.path, key) for info in server.info for key in info.keys]
    if server.version and server.version.key:
        keys.append(server.version)
    series = _series(definition.metrics) if definition.metrics else ()
    return frozenset([*map(Mark.of, keys), *series])


def _series(metrics: Metrics) -> Iterable[Mark]:
    """Histograms left out: they appear with the first request, and their name is that of three series."""
    named = asdict(metrics.counters) | asdict(metrics.gauges)
    return (Mark(metrics.path, "series", name) for name in named.values() if name)
