"""claims.toml as checked data; its head explains the keys."""

import math
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

from harness.errors import SpecError
from harness.model import VERDICT_METRICS
from harness.model.numbers import as_given
from harness.spec.strict import build

FILE = "claims.toml"
KINDS = ("ratio", "value", "scaling", "order", "needs")
# By key of a claim: what the hardware is called, and a pattern for the names of a machine's GPUs; "": it has
# none.
HARDWARE = {
    "cpu": ("a CPU", ""),
    "gpu": ("a GPU", "."),
    "nvidia": ("an NVIDIA GPU", "^(?!.*(Apple|AMD|Instinct|Radeon))."),
    "h100": ("an H100", r"\bH100"),
    "h200": ("an H200", r"\bH200"),
    "a100": ("an A100", r"\bA100(?!\d)"),
    "rtx4090": ("an RTX 4090", r"\b4090"),
    "consumer-gpu": ("a consumer GPU", r"GeForce|RTX [2-5]0[5-9]0"),
    "amd": ("an AMD GPU", "AMD|Instinct|Radeon"),
    "apple": ("Apple silicon", "Apple"),
}
_REPEATS = 3  # the fewest that give an interval
_REQUESTS = 32  # of a load, at least
SIGNS = {"≈": (0.9, 1.1), ">": (1.0, math.inf), ">>": (1.25, math.inf)}


@dataclass(frozen=True, slots=True)
class Source:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Conflict:
    topic: str
    claims: tuple[str, ...]
    says: str


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    says: str
    of: tuple[str, ...] = ()
    measure: str | None = None
    ratio: tuple[float, ...] | None = None
    value: tuple[float, ...] | None = None
    scaling: tuple[float, ...] | None = None
    order: str | None = None
    load: tuple[float, ...] | None = None
    workload: str | None = None
    hardware: str | None = None
    model: str | None = None
    needs: str | None = None
    where: str | None = None

    @property
    def source(self) -> str:
        return self.id.partition("-")[0]

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of ratio, value or scaling: what would fit the claim."""
        low, high = self.ratio or self.value or self.scaling or (0.0, math.inf)
        return low, high

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple((self.order or "").split()[::2]) or self.of

    @property
    def stated_under(self) -> str:
        """The conditions that the source names."""
        users = None
        if self.load is not None:
            low, high = self.load
            users = f"concurrency {as_given(low)}" + (
                "" if low == high else " and more" if high > 1e6 else f" to {as_given(high)}"
            )
        hardware = HARDWARE[self.hardware][0] if self.hardware else None
        known = filter(None, (self.where, hardware, self.model, self.workload, users))
        return "; ".join(known) or "nothing stated"

    def takes(self, kind: str, value: float) -> bool:
        """Whether it is about this load point. A claim that names users says nothing about an open loop."""
        return self.load is None or (kind == "concurrency" and self.load[0] <= value <= self.load[1])

    def pairs(self, present: Set[str]) -> list[tuple[str, str, float, float]]:
        """Better, worse and the ratio that would fit, of the systems at hand: neighbours in an order."""
        if self.order is None:
            return [(self.of[0], self.of[1], *self.limits)] if present >= set(self.of) else []
        words = self.order.split()
        here = [word for word, name in enumerate(words) if word % 2 == 0 and name in present]
        return [
            (words[a], words[b], *SIGNS[max(words[a + 1 : b : 2], key=list(SIGNS).index)])
            for a, b in pairwise(here)
        ]


@dataclass(frozen=True, slots=True)
class Catalog:
    claims: tuple[Claim, ...]
    sources: dict[str, Source]
    workloads: dict[str, tuple[str, ...]]
    conflict: tuple[Conflict, ...]

    def command(self, claim: Claim) -> tuple[str, ...] | None:
        """The run that decides a claim: its systems at the ends of its loads, under the first scenario of its
        kind of work. None: no run of scenarios does.
        """
        if claim.needs is not None:
            return None
        scenario = next(name for name, kinds in self.workloads.items() if claim.workload in (None, *kinds))
        words = ["bench", "run", "--scenario", scenario, "--backends", ",".join(claim.systems)]
        ends = [1.0] if claim.scaling else []
        loads = sorted({int(end) for end in (*ends, *(claim.load or ())) if end < math.inf})
        if claim.load:
            words += [
                "--concurrency",
                ",".join(map(str, loads)),
                "--requests",
                str(max(_REQUESTS, 8 * loads[-1])),
            ]
        return (*words, "--repeats", str(_REPEATS))


@cache
def load_catalog() -> Catalog:
    text = (resources.files(__package__) / FILE).read_text(encoding="utf-8")
    return read_catalog(tomllib.loads(text), FILE)


def read_catalog(table: Mapping[str, object], where: str) -> Catalog:
    """Raises SpecError for what no claim can be."""
    catalog = build(Catalog, table, f"{where}:")
    for claim in catalog.claims:
        given = [kind for kind in KINDS if getattr(claim, kind) is not None]
        if len(given) != 1:
            raise SpecError(f"needs one of {', '.join(KINDS)}, not {given}", where=f"{where}:{claim.id}")
        if claim.needs is None and claim.measure not in VERDICT_METRICS:
            raise SpecError(f"{claim.measure} is not a known measure", where=f"{where}:{claim.id}")
        if claim.hardware is not None and claim.hardware not in HARDWARE:
            raise SpecError(f"unknown hardware '{claim.hardware}'", where=f"{where}:{claim.id}")
        if claim.source not in catalog.sources:
            raise SpecError(f"source {claim.source} is not listed", where=f"{where}:{claim.id}")
    return catalog
