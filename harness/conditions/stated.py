"""Cells with what their run's manifest and its agreement say of them: what `unequal` goes by."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from harness.conditions.settings import Settings, classified, in_words, settings
from harness.conditions.table import TABLE
from harness.model import Agreement, BackendEntry, CellResult, Manifest, ValuesAgreement, known
from harness.model.json_path import value_at

_IN_CELLS = frozenset(key.code for key in TABLE if key.area == "engine" and key.cell is None)


def with_manifest(
    cells: Sequence[CellResult], manifest: Manifest, agreement: Agreement | None = None
) -> tuple[CellResult, ...]:
    """Four more keys in `conditions`, the same for every cell of a start, and one where answers disagree.

    settings: by code of the table. unclassified: what no row knows, null where no setting is known.
    Both are of the last start where a cell has not kept what its own engine reported.
    tuned: values that follow from the workload. searched: codes of those that `bench tune` set.
    disagrees: by the other label, in what.
    """
    starts = [(cell.label, str(cell.conditions.engine)) for cell in cells]
    stated = {
        start: _stated(manifest, cell, agreement)
        for start, cell in dict(zip(starts, cells, strict=True)).items()
    }
    return tuple(
        replace(cell, conditions=replace(cell.conditions, **stated[start]))
        for start, cell in zip(starts, cells, strict=True)
    )


def _stated(manifest: Manifest, cell: CellResult, agreement: Agreement | None) -> dict[str, object]:
    label = cell.label
    stated = settings(manifest, label, known(cell.conditions.engine))
    entry = manifest.backends.get(label) or BackendEntry()
    values = known(agreement.values) if agreement else None
    return {
        "settings": {code: value for code, value in stated.known.items() if code in _IN_CELLS}
        | dict(_of_values(values, label)),
        "unclassified": unclassified(stated, known(entry.backend) or ""),
        "tuned": tuple(_tuned(manifest, label)),
        "searched": _searched(entry),
        "disagrees": dict(_disagrees(agreement, label)),
    }


def _of_values(values: ValuesAgreement | None, label: str) -> Iterator[tuple[str, str]]:
    """What its vectors themselves say, whatever it was started with."""
    if values and label in values.normalised:
        yield "normalisation", "on" if values.normalised[label] else "off"
    if values and label in values.too_long:
        yield "truncation", values.too_long[label]


def unclassified(about: Settings, backend: str) -> dict[str, str] | None:
    if not about.raw:
        return None
    return {
        f"{kind} {name}": value
        for (kind, name), value in about.raw.items()
        if name and classified(kind, name, backend) is None
    }


def _tuned(manifest: Manifest, label: str) -> Iterator[str]:
    entry = manifest.backends.get(label) or BackendEntry()
    values = value_at(entry, "engine.values") or {}
    asked = value_at(manifest, "options.engine_values") or {}
    searched = value_at(entry, "tuned.values") or {}
    for name in searched:
        if name not in asked:
            yield f"{_titled(name, values.get(name))} (bench tune)"
    for name in value_at(manifest, "scenario.engine_values") or {}:
        if name in values and name not in asked and name not in searched:
            yield f"{_titled(name, values[name])} (set by the scenario)"
    most = max(value_at(manifest, "scenario.load.concurrency") or (0,))
    if "max_sequences" in asked and values.get("max_sequences") == most:
        yield f"{_titled('max_sequences', most)} (the highest concurrency)"
    cache = value_at(entry, "engine.prefix_cache") or {}
    if cache.get("enabled") and cache.get("default") is False:
        yield "prefix cache on (off by default)"
    state = value_at(manifest, "scenario.cache.state")
    if cache.get("enabled") and state in ("warm", "primed"):
        yield f"prefix cache {state} at the start"


def _searched(entry: BackendEntry) -> tuple[str, ...]:
    names = value_at(entry, "tuned.values") or {}
    keys = (classified("value", name, known(entry.backend) or "") for name in names)
    return tuple(dict.fromkeys(key[0].code for key in keys if key))


def _titled(name: str, value: object) -> str:
    row = classified("value", name, "")
    return f"{row[0].title} {in_words(row, name, str(value))}" if row else f"{name} {value}"


def _disagrees(agreement: Agreement | None, label: str) -> Iterator[tuple[str, str]]:
    """The disagreement of the first of each pair, so that it is said once."""
    yield from _values_differ(agreement, label)
    for pair in agreement.pairs if agreement else ():
        disagreement = known(pair.disagreement)
        if pair.a == label and disagreement and disagreement.beyond_load:
            text = (
                f"{disagreement.answers} of {pair.compared} are right from one of {label} and {pair.b} only"
            )
            yield pair.b, f"{text}; load changes {disagreement.own} of {disagreement.own_asked}"


def _values_differ(agreement: Agreement | None, label: str) -> Iterator[tuple[str, str]]:
    """Vectors or scores that are not those of the other backend, or not the same in a batch."""
    values = known(agreement.values) if agreement else None
    if values is None:
        return
    unlike = [pair for pair in values.pairs if not pair.alike]
    for pair in values.pairs:
        if pair.a != label or pair.b == label:
            continue
        wrong = [entry for entry in unlike if {entry.a, entry.b} <= {pair.a, pair.b, known(values.reference)}]
        if wrong:
            yield pair.b, "; ".join(entry.words for entry in wrong)
