"""Pairs of a run that no verdict separates, and the repeats that would decide them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_high

from harness.model import PairVerdict, Summary
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.wording import are


@dataclass(frozen=True, slots=True)
class Undecided:
    """Pairs that more repeats might decide: those of the primary metric if there are any, else all."""

    primary: bool
    names: list[str]  # of their metrics
    pairs: int
    total: int  # pairs of these metrics
    needed: list[int]  # repeats of each pair that repeats can decide
    out_of_reach: bool  # very many repeats would be needed for each pair; not where blocks are too alike

    @property
    def words(self) -> str:
        return f"{self.pairs} of {counted(self.total, 'pair')} {are(self.pairs)} undecided"

    @property
    def repeats(self) -> int | None:
        """How many would decide at least half of those that can be decided; None if none can."""
        return median_high(self.needed) if self.needed else None


def undecided(summary: Summary) -> Undecided | None:
    """None if every pair has a verdict, or can have none."""
    found = [entry for entry in summary.comparison if entry.verdict == "not enough runs"]
    primary = [entry for entry in found if entry.primary]
    wanted = primary or found
    if not wanted:
        return None
    metrics = dict.fromkeys(entry.metric for entry in wanted)
    return Undecided(
        bool(primary),
        [measure(metric).name for metric in metrics],
        len(wanted),
        sum(entry.metric in metrics for entry in summary.comparison),
        list(_needed(wanted, summary.verdict_rules.blocks)),
        all(map(_is_out_of_reach, wanted)),
    )


def _is_out_of_reach(entry: PairVerdict) -> bool:
    """Whether very many repeats would not decide a pair.

    Of blocks that are too alike the whole reason is what they lack: more of them would do.
    """
    return entry.ratio is not None and entry.runs_needed is None and entry.lacks != entry.why


def _needed(pairs: Sequence[PairVerdict], blocks: int) -> Iterator[int]:
    """More than the verdict says if some of the measured repeats were left out. `blocks`: of a start."""
    for entry in pairs:
        if entry.runs_needed and min(entry.runs):
            yield math.ceil(entry.runs_needed * max(entry.measured) / blocks / min(entry.runs))
