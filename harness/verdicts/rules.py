"""Rules of verdicts as data, stored in summary.json with the verdicts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from harness.model import CellResult, Manifest, VerdictRules, known
from harness.model.choices import Pairing
from harness.spec.scenario import Verdict
from harness.spec.scenario.verdict import EACH

Sides = TypeVar("Sides")

DEFAULT_FLOOR = 0.02
# Between two sessions a machine differs by more than runs of one session show.
SESSION_FLOOR = 0.05
ONE_START = "runs of one start"
ONE_START_BLOCKS = "blocks of this start"
METHOD = (
    "Student's t over runs on the logarithm of the ratio, runs of the same requests paired, else Welch; "
    "faster, slower: the hypothesis tested is that the ratio lies within the floor; same: that it lies "
    "outside the margin"
)
FAMILY = (
    "the primary metric over all pairs and load points is one family, all other declared metrics over all "
    "pairs and load points another (Holm in each)"
)


# Backend → load label (`c4`) → metric → how far apart two labels of that backend may have been.
Floors = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class Rules:
    primary: str
    metrics: tuple[str, ...]
    alpha: float = 0.05
    min_runs: int = 3
    floor: float = DEFAULT_FLOOR  # a smaller difference is not a finding, however sure
    measured_floors: Floors = field(default_factory=dict)
    same_within: float = 0.05  # "same": the whole interval, at the level of its family, lies within
    large_difference: float = 0.25  # ">>": the whole interval lies beyond
    separate_sessions: bool = False  # measured in different sessions: one had to come after the other
    forced: bool = False  # what is unequal was seen and is to be overlooked
    looks: tuple[int, ...] = ()  # repeats after which verdicts may be decided; empty: once, after all
    last_look: int = 0  # repeats at the last look that was taken
    between_repeats: Mapping[str, str] = field(default_factory=dict)  # by label: restart, reset or keep
    pairing: Pairing = "starts"
    blocks: int = 1  # repeats of one start

    @property
    def look_alpha(self) -> float:
        """Level of one look: the looks share `alpha` equally, so that it bounds all of them together."""
        return self.alpha / max(len(self.looks), 1)

    @property
    def unit(self) -> str:
        """What an interval is over, for people: starts, runs of one start, blocks of this start."""
        if self.pairing != "starts" and "restart" not in self.between_repeats.values():
            return ONE_START_BLOCKS
        kinds = {"starts" if how == "restart" else ONE_START for how in self.between_repeats.values()}
        return "runs" if not kinds else " and ".join(sorted(kinds))

    def named(self, sides: Sides) -> Sides | None:
        """The sides of a comparison of two sessions, which no table has in this order; else None."""
        return sides if self.separate_sessions else None

    def floor_of(self, labels: Iterable[str], load: str, metric: str) -> float:
        """The largest floor that was measured for these backends, at least the usual one."""
        if not self.measured_floors:
            return self.floor
        measured = (self.measured_floors.get(label, {}).get(load, {}).get(metric, 0.0) for label in labels)
        return max(self.floor, *measured)

    @property
    def record(self) -> VerdictRules:
        return VerdictRules(
            **asdict(self),
            confidence=1 - self.look_alpha,
            look_alpha=self.look_alpha,
            unit=self.unit,
            method=METHOD,
            family=FAMILY,
        )


def rules_of(manifest: Manifest, cells: Sequence[CellResult] = ()) -> Rules:
    """Rules as the run declared them; manifests of earlier versions declare none and get the defaults.

    A metric of each class (`by_depth.*`) becomes those of the classes in `cells`.
    """
    declared = known(manifest.scenario.verdict) or Verdict()
    stopping = manifest.stopping
    return Rules(
        primary=declared.primary,
        metrics=tuple(
            dict.fromkeys(
                (
                    declared.primary,
                    *(metric for asked in declared.metrics for metric in _of_each(asked, cells)),
                )
            )
        ),
        measured_floors=manifest.noise_floor or {},
        looks=stopping.looks if stopping else (),
        last_look=stopping.repeats if stopping else 0,
        pairing=manifest.pairing,
        blocks=manifest.blocks,
        between_repeats={
            label: how for label, entry in manifest.backends.items() if (how := known(entry.between_repeats))
        },
    )


def _of_each(metric: str, cells: Sequence[CellResult]) -> Iterator[str]:
    """Yields the metric, or for a metric of each class one for every class that the cells have.

    Requests of one class have no classes: the metric is then that of all of them.
    """
    before, each, after = metric.partition(EACH)
    if not each:
        yield metric
        return
    classes = [getattr(cell, before.rstrip(".")) or {} for cell in cells]
    if not any(classes):
        yield after.lstrip(".")
    for name in dict.fromkeys(name for found in classes for name in found):
        if "." not in name:  # it would be read as another path
            yield f"{before}{name}{after}"
