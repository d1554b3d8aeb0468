"""Finds differences between the conditions of two measurements, from their manifests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from harness.conditions import (
    TABLE,
    Key,
    Measured,
    Relation,
    Settings,
    classified,
    in_words,
    relation,
    settings,
    words_of,
)
from harness.model import BackendEntry, CellResult, Difference, Manifest, as_json, known
from harness.model.conditions import NOT_GIVEN
from harness.model.numbers import as_given
from harness.validity.engine_changed import alike

# What of a scenario its requests are made from, and what of that their hash does not depend on.
_OF_REQUESTS = ("prompts", "text", "lora", "images")
_OF_LOAD = {"load.requests", "load.warmup_requests", "load.start"}
_NOT_HASHED = {"images.send", "images.place", "prompts.settle_s"}
_GENERATOR = "prompts.generator"
_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class Side:
    """One backend of one run."""

    manifest: Manifest
    label: str
    cells: Sequence[CellResult] = ()

    @property
    def backend(self) -> BackendEntry:
        return self.manifest.backends.get(self.label) or BackendEntry()

    @property
    def measured(self) -> Measured:
        return known(self.backend.backend), known(self.backend.variant)


def differences(baseline: Side, new: Side, *, forced: bool = False) -> list[Difference]:
    """Differences in the order of the table of conditions, then those that no row of it covers.

    A setting that only one side gives is one of them. A fact of the run or the machine that only one side
    knows is not, because older versions recorded fewer. `forced`: nothing refuses, so that what would have
    refused cells is listed too.
    """
    first, second = _of_engines(baseline), _of_engines(new)
    by_key = {
        key.code: difference
        for key in TABLE
        if (difference := _of_key(key, baseline, new, first, second, forced)) is not None
    }
    return [
        *by_key.values(),
        *_raw(baseline, new, first, second, by_key),
        *_of_scenario(baseline, new),
        *_of_clients(baseline, new),
    ]


def _of_engines(side: Side) -> Settings:
    """The settings of all engines that the cells were measured on: `200000, 100000` where they changed."""
    kept = {str(engine): engine for cell in side.cells if (engine := known(cell.conditions.engine))}
    each = [settings(side.manifest, side.label, engine) for engine in kept.values() or (None,)]
    together = Settings(_joined([found.known for found in each]), _joined([found.raw for found in each]))
    if kept:  # the version of the package where there is one, as in a manifest
        named = [cell.versions[0] for cell in side.cells if cell.engine_version]
        together.known.update(_joined([{"engine-version": version} for version in named], exact=True))
    return together


def _joined(each: Sequence[Mapping[_Name, str]], exact: bool = False) -> dict[_Name, str]:
    joined: dict[_Name, list[str]] = {}
    for name, value in chain.from_iterable(found.items() for found in each):
        values = joined.setdefault(name, [])
        if not any(alike(value, other, exact) for other in values):
            values.append(value)
    return {name: ", ".join(values) for name, values in joined.items()}


def other_requests(baseline: Side, new: Side) -> str:
    """What makes the requests of two runs unlike: `other requests: prompts.groups 2 (baseline), 4 (new)`.

    What only the manifest of one side has is none of it, because older versions had fewer settings. `cells`:
    those of the load point; a capacity search sends as many requests as the answers' time allows.
    """
    before, after = dict(_of_requests(baseline.manifest)), dict(_of_requests(new.manifest))
    if before.get(_GENERATOR) != after.get(_GENERATOR):
        own = {name for name in before if name.startswith("prompts.")} - {_GENERATOR}
        before = {name: value for name, value in before.items() if name not in own}
    unlike = [
        f"{name} {_words(before[name])} (baseline), {_words(after[name])} (new)"
        for name in before
        if name in after and before[name] != after[name]
    ]
    if unlike:
        return f"other requests: {'; '.join(unlike)}"
    sizes, other_sizes = _probe_sizes(baseline.cells), _probe_sizes(new.cells)
    if sizes != other_sizes:
        return f"other requests: requests of a probe {sizes} (baseline), {other_sizes} (new)"
    first, second = (side.manifest.packages.get("llm-servebench") for side in (baseline, new))
    versions = "" if first == second else f", or by bench {first} (baseline), {second} (new)"
    return f"other requests, though scenario and seed are the same: counted by another tokenizer{versions}"


def _probe_sizes(cells: Iterable[CellResult]) -> str:
    """Requests of each probe of a capacity search: `40, 160`."""
    return ", ".join(str(cell.requests.planned) for cell in cells if cell.probe is not None) or "none"


def _of_requests(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    """Yields what the hash of the requests depends on, but for the loads at which they are sent."""
    of_run = {"seed": manifest.seeds and manifest.seeds.run, "kv_tokens": manifest.kv_tokens}
    yield from ((name, value) for name, value in of_run.items() if value is not None)
    for name, value in _settings(manifest, (*_OF_REQUESTS, "load")):
        if name in _OF_LOAD or (name.partition(".")[0] in _OF_REQUESTS and name not in _NOT_HASHED):
            yield name, value


def _of_clients(baseline: Side, new: Side) -> Iterator[Difference]:
    """Yields another client, or another version of one, which may define its figures otherwise."""
    before, after = (
        ", ".join(dict.fromkeys(cell.imported.source if cell.imported else "bench" for cell in side.cells))
        for side in (baseline, new)
    )
    if before and after and before != after:
        yield Difference("client", before, after, False)


def _of_scenario(baseline: Side, new: Side) -> Iterator[Difference]:
    """Yields settings that differ and that no row knows from the cells of both. Older versions had fewer."""
    before, after = (
        dict(_settings(side.manifest, (*_OF_REQUESTS, "load", "request", "verdict", "slo")))
        for side in (baseline, new)
    )
    rows = [key for key in TABLE if key.scenario and _of_cells(key, baseline) and _of_cells(key, new)]
    covered = tuple(f"{path}." for key in rows for path in key.scenario)
    for name in before:
        if name in after and before[name] != after[name] and not f"{name}.".startswith(covered):
            yield Difference(f"scenario {name}", _words(before[name]), _words(after[name]), False)


def _words(value: Any) -> str:
    """Says what a scenario sets as the rows of the table do: `on`, `none`, `4, 8`, `name=4k weight=1`."""
    if value is None or value == "":
        return "none"
    if isinstance(value, dict):
        return " ".join(f"{key}={_words(below)}" for key, below in value.items())
    if isinstance(value, float):
        return as_given(value)
    return words_of(list(map(_words, value)) if isinstance(value, list) else value)


def _settings(manifest: Manifest, tables: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yields what these tables of the scenario set, by dotted path."""
    scenario = as_json(manifest.scenario)
    pending = [(name, scenario[name]) for name in reversed(tables) if name in scenario]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{name}.{key}", below) for key, below in reversed(value.items())]
        else:
            yield name, value


def _of_key(
    key: Key, baseline: Side, new: Side, first: Settings, second: Settings, forced: bool
) -> Difference | None:
    before, after = first.known.get(key.code), second.known.get(key.code)
    kind = relation(baseline.measured, new.measured)
    # What cells know refuses no pair: they are judged one by one, and here it is listed.
    listed = before is after is None and (forced or key.effect(kind) == "shown" or bool(key.metrics))
    if listed:
        before, after = _of_cells(key, baseline), _of_cells(key, new)
    if before == after or key.effect(kind) == "ignored":
        return None
    if None in (before, after) and not (key.named and first.raw and second.raw):
        return None
    # Whether a limit was reached is known from the cells, which are judged by the same table.
    matters = (forced or not listed) and key.refuses(kind, before, after) and key.code != "max-sequences"
    return Difference(key.title, before or NOT_GIVEN, after or NOT_GIVEN, matters)


def _of_cells(key: Key, side: Side) -> str | None:
    values = (key.cell(cell) for cell in side.cells if key.cell is not None)
    return ", ".join(dict.fromkeys(str(value) for value in values if value is not None)) or None


def _raw(
    baseline: Side, new: Side, first: Settings, second: Settings, reported: Mapping[str, Difference]
) -> Iterator[Difference]:
    """Yields settings that differ: all of them for one engine, for two engines those not in the table."""
    kind = relation(baseline.measured, new.measured)
    names = {known(side.backend.backend) or "" for side in (baseline, new)}
    for what in dict.fromkeys((*first.raw, *second.raw)):
        before, after = first.raw.get(what, NOT_GIVEN), second.raw.get(what, NOT_GIVEN)
        if before == after or what[0] not in first.kinds & second.kinds:
            continue
        rows = [row for name in names if (row := classified(*what, name)) is not None]
        if not any(_is_covered(what[1], (before, after), row, reported, kind) for row in rows):
            yield Difference(" ".join(what) if what[1] else "command", before, after, False)


def _is_covered(
    what: str,
    stated: Sequence[str],
    row: tuple[Key, str],
    reported: Mapping[str, Difference],
    kind: Relation,
) -> bool:
    """Whether the row of the table reports this difference already, or says that it cannot matter."""
    key, _ = row
    if kind == "engines" or key.effect(kind) == "ignored":
        return True
    words = [word if word == NOT_GIVEN else in_words(row, what, word) for word in stated]
    if key.code not in reported:
        return what in key.units and words[0] == words[1]  # 2 GiB and 2.0
    return words == [reported[key.code].baseline, reported[key.code].new]
