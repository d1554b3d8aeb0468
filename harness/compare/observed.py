"""One number per run: cells of summary.json by backend and load, INVALID ones left out."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Cell = Mapping[str, Any]


class LoadKey(NamedTuple):
    kind: str
    value: float

    @property
    def label(self) -> str:
        return f"{self.kind[0]}{self.value:g}"

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "value": self.value}


@dataclass(frozen=True, slots=True)
class Series:
    """The cells of one backend at one load point that may enter a verdict, and how many may not."""

    label: str
    cells: tuple[Cell, ...]
    invalid: int

    def values(self, metric: str) -> dict[tuple[str, int], float]:
        """By the work a run had: the hash of its requests and which run of these requests it was."""
        seen: Counter[str] = Counter()
        found = {}
        for cell in self.cells:
            sha256 = str(cell["workload_sha256"])
            value = number_at(cell, metric)
            if value is not None:
                found[sha256, seen[sha256]] = value
            seen[sha256] += 1
        return found

    def span(self) -> tuple[Any, Any]:
        """When its first and last run began; names sort in plan order where no time is known."""
        times = [cell.get("started_unix_ns") or cell["cell"] for cell in self.cells]
        return min(times), max(times)


def load_of(cell: Cell) -> LoadKey:
    return LoadKey(cell["load"]["kind"], cell["load"]["value"])


def loads(cells: Iterable[Cell]) -> list[LoadKey]:
    return sorted({load_of(cell) for cell in cells})


def labels(cells: Iterable[Cell]) -> list[str]:
    """In the order in which they were first measured, which is the user's."""
    return list(dict.fromkeys(cell["label"] for cell in cells))


def series(cells: Sequence[Cell], load: LoadKey) -> list[Series]:
    here = [cell for cell in cells if load_of(cell) == load]
    return [_series(label, [cell for cell in here if cell["label"] == label]) for label in labels(cells)]


def _series(label: str, cells: Sequence[Cell]) -> Series:
    usable = tuple(cell for cell in cells if cell["validity"]["verdict"] != "INVALID")
    return Series(label, usable, len(cells) - len(usable))


def number_at(cell: Cell, metric: str) -> float | None:
    """At a dotted path such as `ttft_ms.p50`; None for null and for anything that is not finite."""
    value: Any = cell
    for key in metric.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def aligned(
    a: Mapping[tuple[str, int], float], b: Mapping[tuple[str, int], float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Values of both, and whether value i of both came from the same requests.

    Paired where most runs have a partner; those without one are then left out.
    """
    common = [key for key in a if key in b]
    if 2 * len(common) > min(len(a), len(b)):
        return np.array([a[key] for key in common]), np.array([b[key] for key in common]), True
    return np.array(list(a.values())), np.array(list(b.values())), False
