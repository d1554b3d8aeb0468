"""Verdicts of a run that is looked at while it runs, and whether more repeats can decide anything.

Looks are planned before the run. Each may decide at an equal share of the level (Bonferroni over looks, Holm
inside one), so any false verdict of a family has at most the level of the rules, whenever and for whatever
reason the run stops. Why not other boundaries: docs/verdicts-evidence.md.
"""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from harness.model import LoadPoint, PairVerdict
from harness.verdicts.evidence import flattered
from harness.verdicts.pairs import find
from harness.verdicts.prospects import LEAST_CHANCE
from harness.verdicts.rules import ONE_START_BLOCKS, Rules
from harness.verdicts.run_values import Series

Rows = Mapping[LoadPoint, Sequence[Series]]

# Repeats after which a run is looked at: more often at first, where a repeat adds most information.
LOOKS = (3, 4, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112)
DECIDED = ("faster", "slower", "same")


def looks_between(least: int, most: int) -> tuple[int, ...]:
    """Looks from `least` repeats to `most`, both included."""
    return (*(look for look in (least, *LOOKS[bisect(LOOKS, least) :]) if look < most), most)


def find_by_looks(rows: Rows, rules: Rules) -> list[PairVerdict]:
    """Verdicts of a run: without looks from all that was measured, else from the looks taken so far.

    A decided verdict on the primary metric stays, with the interval of its look, unless what was measured
    later forbids the comparison, such as a run that failed. The other metrics do not decide when a run stops,
    so they have the verdicts of the last look, at its level.
    """
    if not rules.looks:
        return find(rows, rules)
    decided: dict[tuple[str, str, LoadPoint, str], PairVerdict] = {}
    primary = replace(rules, metrics=(rules.primary,))
    for look in rules.looks:
        if look < rules.last_look:
            for finding in find(_before(rows, look), primary, rules.look_alpha):
                if finding.verdict in DECIDED:
                    decided.setdefault(_place(finding), finding)
    seen = _before(rows, rules.last_look) if rules.last_look else rows
    last = find(seen, rules, rules.look_alpha)
    return [_kept(decided.get(_place(finding)), finding) for finding in last]


def _kept(decided: PairVerdict | None, last: PairVerdict) -> PairVerdict:
    """The verdict of an earlier look, unless what was measured since forbids it; else that of the last look.

    Runs that failed or are left out since are counted in it, since a rank line names them.
    """
    if decided is None or last.verdict == "not comparable" or flattered(decided.verdict, last.failed):
        return last
    if not any(last.failed):
        return decided
    return changed(decided, failed=last.failed, measured=last.measured, left_out=last.left_out)


@dataclass(frozen=True, slots=True)
class LookResult:
    """State of the primary metric over all pairs and load points, after a look."""

    decided: int
    not_comparable: int
    undecided: tuple[PairVerdict, ...]  # more runs could decide them
    hopeless: int  # no figure in any run, or one that is 0: more runs would not change that
    unlikely: int = 0  # the repeats that are allowed would hardly decide them

    @property
    def all(self) -> int:
        left = len(self.undecided) + self.hopeless + self.unlikely
        return self.decided + self.not_comparable + left

    @property
    def needed(self) -> set[tuple[str, LoadPoint]]:
        """Backends, each with a load point at which an undecided pair needs more runs of it."""
        return {(label, finding.load) for finding in self.undecided for label in (finding.a, finding.b)}

    @property
    def blocks(self) -> int | None:
        """Number of blocks of a start that decides the undecided pairs soonest; None: not known."""
        wanted = (finding.levels.blocks for finding in self.undecided if finding.levels)
        return max((blocks for blocks in wanted if blocks), default=None)

    @property
    def words(self) -> str:
        """`decided 3 of 6 pairs`, a pair at two load points counted twice."""
        refused = f", {self.not_comparable} not comparable" if self.not_comparable else ""
        given_up = f", {self.unlikely} given up" if self.unlikely else ""
        return f"decided {self.decided} of {self.all} pairs{refused}{given_up}"


def take_look(rows: Rows, rules: Rules) -> LookResult:
    """The state after the look at `rules.last_look` repeats."""
    verdicts = find_by_looks(rows, replace(rules, metrics=(rules.primary,)))
    waiting = [finding for finding in verdicts if finding.verdict == "not enough runs"]
    possible = [finding for finding in waiting if _can_be_decided(finding, rows, rules)]
    undecided = tuple(
        finding for finding in possible if finding.chance is None or finding.chance >= LEAST_CHANCE
    )
    return LookResult(
        decided=sum(finding.verdict in DECIDED for finding in verdicts),
        not_comparable=sum(finding.verdict == "not comparable" for finding in verdicts),
        undecided=undecided,
        hopeless=len(waiting) - len(possible),
        unlikely=len(possible) - len(undecided),
    )


def _can_be_decided(finding: PairVerdict, rows: Rows, rules: Rules) -> bool:
    """Whether more runs can decide a pair.

    A percentile too high for single runs counts as measured if every run has pooled requests. Blocks of one
    start need figures of their own, however many there are.
    """
    if rules.unit == ONE_START_BLOCKS and finding.method == "pooled":
        return False
    if min(finding.runs) >= rules.min_runs:
        return finding.ratio is not None
    sides = [row for row in rows[finding.load] if row.label in (finding.a, finding.b)]
    return min(finding.runs) > 0 or all(row.pooled(finding.metric) for row in sides)


def _before(rows: Rows, repeat: int) -> Rows:
    return {load: [row.before(repeat) for row in here] for load, here in rows.items()}


def _place(finding: PairVerdict) -> tuple[str, str, LoadPoint, str]:
    return finding.a, finding.b, finding.load, finding.metric
