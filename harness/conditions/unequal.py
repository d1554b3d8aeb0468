"""Differences that make cells unequal, as data: the report shows them, a comparison refuses pairs by them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from harness.conditions.keys import Key, Relation, relation
from harness.conditions.measured import Group, listed, measured
from harness.conditions.settings import of_values
from harness.conditions.table import TABLE
from harness.model import CellResult, LoadPoint, Unequal, labels
from harness.model.conditions import NOT_GIVEN


def unequal(cells: Sequence[CellResult]) -> tuple[Unequal, ...]:
    """The `unequal` list of summary.json, and of any cells that are to be compared, of one run or several.

    Cells are compared with those of other labels at the same load point and repeat, so cells of several runs
    need labels that tell them apart. One entry per kind of difference and set of labels.
    """
    groups: dict[tuple[LoadPoint, int], dict[str, CellResult]] = {}
    for cell in cells:
        groups.setdefault((cell.point, cell.repeat), {})[cell.label] = cell
    differences: dict[tuple[str, tuple[str, ...]], Unequal] = {}
    names = labels(cells)  # the order of measuring turns round
    for group in groups.values():
        for difference in _findings({label: group[label] for label in names if label in group}):
            key = (difference.code, difference.labels)
            kept = differences.get(key)
            if kept is None or (difference.matters, difference.apart) > (kept.matters, kept.apart):
                differences[key] = difference
    return tuple(differences.values())


def _findings(group: Group) -> Iterator[Unequal]:
    if len(group) > 1:
        # Cells of earlier versions kept the values of the definition only.
        known: dict[str, Mapping[str, str]] = {
            label: cell.conditions.settings or of_values(cell.conditions.engine_values)
            for label, cell in group.items()
        }
        for key in TABLE:
            values = {
                label: known[label].get(key.code) if key.cell is None else key.cell(cell)
                for label, cell in group.items()
            }
            each = list(values.values())
            if each.count(each[0]) < len(each):  # nearly all of them are alike, or not known
                yield from _differing(group, key, values)
        yield from _known_of_some(group, known)
        yield from _unclassified(group)
        yield from measured(group)
    yield from _tuned(group)


def _differing(group: Group, key: Key, values: Mapping[str, object]) -> Iterator[Unequal]:
    known = {label: value for label, value in values.items() if value is not None}
    pairs = [(a, b) for a, b in combinations(known, 2) if known[a] != known[b]]
    related = {pair: _related(group, *pair) for pair in pairs}
    if all(key.effect(pair_values) == "ignored" for pair_values in related.values()):
        return
    refused = any(
        key.refuses(pair_values, known[a], known[b])
        for (a, b), pair_values in related.items()
        if not _both_tuned(key, group[a], group[b])
    )
    slots = next(iter(group.values())).load.slots
    matters = refused and (key.code != "max-sequences" or exceeds(slots, known))
    yield Unequal(key.code, tuple(known), described(key, known), matters, key.metrics, what=key.title)


def described(key: Key, values: Mapping[str, object]) -> str:
    """`CPU threads: 2 (vllm), 1 (sglang)`."""
    return f"{key.title}: {listed(values)}"


def _both_tuned(key: Key, a: CellResult, b: CellResult) -> bool:
    """Whether both were tuned. In the tuned division each engine has its own best: that they differ is the
    question."""
    searched = any(key.code in cell.conditions.searched for cell in (a, b))
    return searched and all(cell.division == "tuned" for cell in (a, b))


def _related(group: Group, a: str, b: str) -> Relation:
    first, second = group[a], group[b]
    return relation((first.backend, first.variant), (second.backend, second.variant))


def exceeds(in_flight: float | None, limits: Mapping[str, object]) -> bool:
    """Whether the load can exceed the fewest sequences at once: so it is taken where either is no number.

    `limits`: by label, in the words of a server or of a command line.
    """
    try:
        least = min(float(str(limit)) for limit in limits.values())
    except ValueError:
        return True
    return in_flight is None or in_flight > least


def _known_of_some(group: Group, known: Mapping[str, Mapping[str, str]]) -> Iterator[Unequal]:
    """Settings that only some have or tell; of several engines in one entry, since each has its own."""
    shared: dict[tuple[str, ...], list[str]] = {}
    relations = {_related(group, a, b) for a, b in combinations(group, 2)}
    for key in TABLE:
        values = {label: found[key.code] for label, found in known.items() if key.code in found}
        if key.cell is not None or not values or len(values) == len(group):
            continue
        if all(key.effect(found) == "ignored" for found in relations):
            continue
        if "engines" in relations:
            shared.setdefault(tuple(values), []).append(
                f"{key.title} {', '.join(dict.fromkeys(values.values()))}"
            )
        else:
            every = {label: values.get(label, NOT_GIVEN) for label in group}
            yield Unequal(key.code, tuple(group), described(key, every), False)
    for names, settings in shared.items():
        yield Unequal(
            "known-of-some", names, f"known of {', '.join(names)} only: {'; '.join(settings)}", False
        )


def _unclassified(group: Group) -> Iterator[Unequal]:
    """Flags, variables and values that no row of the table knows."""
    stated = {label: cell.conditions.unclassified for label, cell in group.items()}
    known = {label: found for label, found in stated.items() if found is not None}
    for name in dict.fromkeys(name for found in known.values() for name in found):
        values = {label: found.get(name, NOT_GIVEN) for label, found in known.items()}
        if len(set(values.values())) > 1:
            yield Unequal(f"unclassified {name}", tuple(known), f"{name}: {listed(values)}", False)


def _tuned(group: Group) -> Iterator[Unequal]:
    """Values that an engine would not have for traffic that it does not know."""
    tuned = {label: cell.conditions.tuned for label, cell in group.items()}
    values = {label: ", ".join(names) for label, names in tuned.items() if names}
    if values:
        same, *others = dict.fromkeys(values.values())
        text = f"tuned to this workload: {listed(values) if others else same}"
        yield Unequal("tuned-to-workload", tuple(values), text, False)
