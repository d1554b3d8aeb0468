"""What will make backends unequal, by their definitions and flags, before the first cell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from msgspec.structs import replace

from harness.conditions.keys import Key, relation
from harness.conditions.measured import unasked
from harness.conditions.settings import classified, of_engine
from harness.conditions.table import TABLE
from harness.conditions.unequal import described, exceeds
from harness.model import Unequal


@dataclass(frozen=True, slots=True)
class Ahead:
    """One backend. `engine`: values, command and env, as its manifest will keep them."""

    backend: str  # name of the definition
    variant: str | None
    engine: Mapping[str, Any]
    tuned: frozenset[str] = frozenset()  # names of the values that `bench tune` set
    unsupported: Mapping[str, str] = field(default_factory=dict)  # as the cells will have it


def foreseen(
    backends: Mapping[str, Ahead], in_flight: float | None = None
) -> Iterator[tuple[Key | None, Unequal]]:
    """A row of the table and its difference, for each pair of labels and condition that refuses a verdict.

    They come in the order of the pairs, with the text that `unequal` finds in their cells. No row belongs to
    what one of the pair has no field for. `in_flight`: the most requests of a closed loop at once; None: no
    limit is known.
    """
    known = {label: of_engine(label_of.engine, label_of.backend) for label, label_of in backends.items()}
    for pair in combinations(backends, 2):
        first, second = (backends[label] for label in pair)
        related = relation((first.backend, first.variant), (second.backend, second.variant))
        for key in TABLE:
            values = {label: known[label].get(key.code) for label in pair}
            if (
                key.cell is None
                and key.refuses(related, *values.values())
                and not _searched_by_both(key, first, second)
                and (key.code != "max-sequences" or exceeds(in_flight, values))
            ):
                yield key, Unequal(key.code, pair, described(key, values), True, key.metrics, what=key.title)
        for label_of in unasked({label: backends[label].unsupported for label in pair}):
            if label_of.matters:
                yield None, replace(label_of, labels=pair)


def _searched_by_both(key: Key, first: Ahead, second: Ahead) -> bool:
    """Whether both were tuned. In the tuned division each engine has its own best: that they differ is the
    question."""
    rows = [
        row[0].code
        for side in (first, second)
        for name in side.tuned
        if (row := classified("value", name, ""))
    ]
    return bool(first.tuned and second.tuned) and key.code in rows
