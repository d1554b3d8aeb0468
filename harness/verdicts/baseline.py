"""Compares runs of any time and machine with a baseline: what differs, and verdicts where possible."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import cached_property

from msgspec.structs import asdict, replace

from harness.errors import SpecError
from harness.model import (
    Capacity,
    CapacityPair,
    CellResult,
    ComparedAccuracy,
    ComparedFigure,
    ComparedLabel,
    ComparedPair,
    ComparedRun,
    Difference,
    GateRow,
    LoadPoint,
    Manifest,
    MissingFigure,
    PairVerdict,
    RunComparison,
    Summary,
    labels,
)
from harness.model.grouping import grouped
from harness.model.per_user import SpeedLevel
from harness.spec.strict import nearest
from harness.verdicts import accuracy
from harness.verdicts.capacity import surely_carried
from harness.verdicts.capacity_pairs import capacity_pair, obstacle
from harness.verdicts.doubted import doubted
from harness.verdicts.gate import LEVEL, Place, stalls, tail_metric
from harness.verdicts.manifests import Side, differences, other_requests
from harness.verdicts.missing import Missing, check_allowed, failed_to_start, missing
from harness.verdicts.pairs import Pairing, decide
from harness.verdicts.per_user import levels_of_each
from harness.verdicts.ratio import estimate
from harness.verdicts.rules import SESSION_FLOOR, Rules, rules_of
from harness.verdicts.run_values import Samples, Series, loads, series

_Compared = tuple[str, str, LoadPoint]  # the names of both sides, and a load


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    name: str  # unique among those compared
    manifest: Manifest
    summary: Summary
    samples: Mapping[str, Samples]  # by the name of the cell; empty where the records were not copied along

    @property
    def cells(self) -> tuple[CellResult, ...]:
        return self.summary.cells

    @property
    def labels(self) -> list[str]:
        return labels(self.cells)


@dataclass(frozen=True, slots=True)
class _Member:
    run: Run
    label: str

    @property
    def name(self) -> str:
        return f"{self.run.name}/{self.label}"

    @property
    def samples(self) -> Mapping[str, Samples]:
        return self.run.samples

    @property
    def capacity(self) -> Capacity | None:
        """The answer to its capacity search; None without one."""
        searched = self.run.summary.capacity or ()
        return next((found for found in searched if found.label == self.label), None)

    @property
    def cells(self) -> list[CellResult]:
        return [replace(cell, label=self.name) for cell in self.run.cells if cell.label == self.label]


def compare_runs(
    runs: Sequence[Run],
    baseline: str | None = None,
    *,
    force: bool = False,
    floor: float | None = None,
    allow_missing: Sequence[str] = (),
) -> RunComparison:
    """Compares all pairs; in each, `a` is the new one and `b` the baseline. Raises SpecError.

    `baseline` names a run or a backend; without it, it is the first run, or the first backend of a single
    run. `floor` replaces the smallest difference that counts, 2% inside one run and 5% between two; above 5%
    it is the margin of *same* too.
    `allow_missing` names backends, load points (`c8`), both (`vllm/c8`) or metrics that the new run may lack.
    """
    members = list(_pairs(runs, baseline))
    if len(runs) == 1 and not members:
        raise SpecError(
            "only one backend: nothing to compare",
            where=runs[0].name,
            hint="name a second run, or one with several backends",
        )
    check_allowed(
        allow_missing,
        [cell for run in runs for cell in run.cells],
        {metric for run in runs for metric in rules_of(run.manifest, run.cells).metrics},
    )
    pairs = [_Pair(new, old, force, floor) for new, old in members]
    pairings = [pairing for pair in pairs for pairing in pair.pairings]
    verdicts = grouped(((verdict.a, verdict.b, verdict.load), verdict) for verdict in decide(pairings))
    levels = levels_of_each([pair.sweep for pair in pairs])
    compared = tuple(pair.compared(verdicts, found) for pair, found in zip(pairs, levels, strict=True))
    gone = tuple(dict.fromkeys(_missing(pairs, allow_missing)))  # a run lacks a load once, of all its pairs
    answers = tuple(row for pair in pairs for row in pair.accuracy(len(pairs)))
    return RunComparison(
        runs=tuple(map(_about, runs)),
        baseline=members[0][1].run.name if members else None,
        pairs=compared,
        doubts=doubted([(figures, pair.pairings) for pair, figures in zip(pairs, compared, strict=True)]),
        missing=gone,
        accuracy=answers,
        gate=(
            *_gate(pairs, compared, gone),
            *(row for row in accuracy.drops(answers) if row.kind == "accuracy"),
        ),
    )


def _gate(
    pairs: Sequence["_Pair"], compared: Sequence[ComparedPair], gone: Sequence[MissingFigure]
) -> Iterator[GateRow]:
    for figure in gone:
        if not figure.allowed:
            yield Place(figure.run, figure.label).row("missing", figure.why, figure.load, figure.metric)
    figured = list(zip(pairs, compared, strict=True))
    tests = (1 if figures.capacity is not None else len(pair.pairings) for pair, figures in figured)
    level = LEVEL / max(sum(tests), 1)
    at_loads: list[tuple[Place, Pairing]] = []
    for pair, pair_figures in figured:
        subject = Place(pair.new.run.name, pair.new.label)
        if pair_figures.capacity is not None:  # its loads were tried by chance
            yield from subject.capacity(pair_figures.capacity)
            if pair_figures.capacity.verdict != "not comparable":
                yield from subject.counts(*pair.carried, None, level)
            continue
        yield from subject.findings(pair_figures.findings)
        for pairing in pair.pairings:
            yield from subject.counts(pairing.a, pairing.b, pairing.load, level)
            at_loads.append((subject, pairing))
    yield from stalls(at_loads)


def _missing(pairs: Sequence["_Pair"], allowed: Sequence[str]) -> Iterator[MissingFigure]:
    for old_run, run in dict.fromkeys((pair.old.run, pair.new.run) for pair in pairs if pair.same_backend):
        for label in old_run.labels:
            if label not in run.labels:
                gone = failed_to_start(run.manifest, label) or Missing(label, None, None, "not in this run")
                yield gone.of(run.name, allowed)
    for pair in pairs:
        yield from (figure.of(pair.new.run.name, allowed) for figure in pair.missing())


def _about(run: Run) -> ComparedRun:
    manifest = run.manifest
    return ComparedRun(
        name=run.name,
        run=manifest.run,
        created_utc=manifest.created_utc,
        hostname=manifest.host.hostname if manifest.host else None,
        scenario=manifest.scenario.scenario.name,
        state=manifest.state,
        simulated=any(cell.simulated for cell in run.cells),
        imported=tuple(dict.fromkeys(cell.imported.words for cell in run.cells if cell.imported)),
        capacity=run.summary.capacity or (),
    )


def _pairs(runs: Sequence[Run], baseline: str | None) -> Iterator[tuple[_Member, _Member]]:
    members = [_Member(run, label) for run in runs for label in run.labels]
    chosen = next((run for run in runs if run.name == baseline), None)
    if baseline is not None and chosen is None:
        old = next((member for member in members if member.label == baseline), None)
        if old is None:
            known = [*(run.name for run in runs), *dict.fromkeys(member.label for member in members)]
            raise SpecError(
                f"no run and no backend '{baseline}' among these",
                where="--baseline",
                hint=nearest(baseline, known),
            )
        yield from ((new, old) for new in members if new != old)
        return
    old_run = chosen or runs[0]
    if len(runs) == 1:
        yield from ((new, members[0]) for new in members[1:])
        return
    for run in runs:
        if run is not old_run:
            yield from _between(run, old_run)


def _between(run: Run, old_run: Run) -> Iterator[tuple[_Member, _Member]]:
    """Pairs each backend with itself, or each with each if the runs share none."""
    common = [label for label in run.labels if label in old_run.labels]
    if common:
        yield from ((_Member(run, label), _Member(old_run, label)) for label in common)
    else:
        yield from ((_Member(run, a), _Member(old_run, b)) for b in old_run.labels for a in run.labels)


@dataclass(frozen=True)
class _Pair:
    new: _Member
    old: _Member
    force: bool
    floor: float | None

    @cached_property
    def rules(self) -> Rules:
        return _rules(self.new, self.old, self.force, self.floor)

    @cached_property
    def differences(self) -> list[Difference]:
        baseline, new = (
            Side(member.run.manifest, member.label, member.cells) for member in (self.old, self.new)
        )
        return differences(baseline, new, forced=self.force)

    @property
    def same_backend(self) -> bool:
        """Whether both are one backend in two runs: then the new run must have all that the old one has."""
        return self.new.run is not self.old.run and self.new.label == self.old.label

    @property
    def refused(self) -> str | None:
        return "; ".join(difference.text for difference in self.differences if difference.matters) or None

    @cached_property
    def pairings(self) -> list[Pairing]:
        """The pair at every load point that both have."""
        pairs = []
        for load in loads([*self.new.cells, *self.old.cells]):
            a, b = (
                next(iter(series(member.cells, load, member.samples)), Series(member.name, ()))
                for member in (self.new, self.old)
            )
            if a.measured and b.measured:
                tail = tail_metric(a, b, self.rules.metrics)
                rules = changed(self.rules, metrics=(*self.rules.metrics, tail)) if tail else self.rules
                pairs.append(Pairing(a, b, load, rules, self._refused_at(a, b)))
        return pairs

    def _refused_at(self, a: Series, b: Series) -> str | None:
        sides = Side(self.old.run.manifest, b.label, b.cells), Side(self.new.run.manifest, a.label, a.cells)
        unlike = other_requests(*sides) if _requests_differ(a, b) else None
        return "; ".join(filter(None, (self.refused, unlike))) or None

    def accuracy(self, pairs: int) -> Iterator[ComparedAccuracy]:
        now, before = ((member.run.summary.agreement, member.label) for member in (self.new, self.old))
        new, old = (ComparedLabel(run=member.run.name, label=member.label) for member in (self.new, self.old))
        return accuracy.compared(new, old, now, before, pairs)

    @property
    def capacity(self) -> CapacityPair | None:
        a, b = self.new.capacity, self.old.capacity
        if a is None or b is None:
            return None
        refused = None if self.force else self.refused or obstacle(self.new.cells, self.old.cells)
        return capacity_pair(a, b, self._in_words(refused) if refused else None)

    @property
    def carried(self) -> tuple[Series, Series]:
        """Both sides at the loads that both surely carry and that both tried, since more requests may fail at
        one load than at another.
        """
        found = (self.new.capacity, self.old.capacity)
        most = min((surely_carried(capacity) for capacity in found if capacity), default=0.0)
        points = {cell.point for cell in self.new.cells} & {cell.point for cell in self.old.cells}
        carried = {point for point in points if point.value <= most}
        new, old = (
            Series(member.name, tuple(cell for cell in member.cells if cell.point in carried))
            for member in (self.new, self.old)
        )
        return new, old

    def missing(self) -> Iterator[Missing]:
        old, new = (
            [replace(cell, label=self.new.label) for cell in member.cells] for member in (self.old, self.new)
        )
        stopping = self.new.run.manifest.stopping
        # A class of requests may be in the baseline alone.
        declared = rules_of(self.old.run.manifest, self.old.run.cells).metrics
        metrics = tuple(dict.fromkeys((*self.rules.metrics, *declared)))
        yield from missing(old, new, metrics, stopping.repeats if stopping else None)
        if failed_to_start(self.old.run.manifest, self.old.label) is None:
            gone = failed_to_start(self.new.run.manifest, self.new.label)
            yield from () if gone is None else (gone,)

    @property
    def sweep(self) -> tuple[list[CellResult], Rules]:
        """What is compared at equal speed per user: nothing of a search, nor of a pair that is refused."""
        searched = any(member.run.manifest.find_capacity for member in (self.new, self.old))
        refused = searched or (self.refused and not self.force)
        return [] if refused else [*self.new.cells, *self.old.cells], self.rules

    def compared(
        self, verdicts: Mapping[_Compared, Sequence[PairVerdict]], levels: Sequence[SpeedLevel]
    ) -> ComparedPair:
        """Takes the verdicts of this pair out of those of all pairs."""
        findings = tuple(
            ComparedFigure(
                **asdict(verdict)
                | {"why": self._in_words(verdict.why), "lacks": self._in_words(verdict.lacks)},
                values=_values(pairing, verdict),
            )
            for pairing in self.pairings
            for verdict in verdicts.get((self.new.name, self.old.name, pairing.load), ())
        )
        return ComparedPair(
            a=ComparedLabel(run=self.new.run.name, label=self.new.label),
            b=ComparedLabel(run=self.old.run.name, label=self.old.label),
            differences=tuple(self.differences),
            refused=None if self.force else self.refused,
            findings=findings,
            verdict_rules=self.rules.record,
            capacity=self.capacity,
            per_user=tuple(self._worded(level) for level in levels),
        )

    def _worded(self, level: SpeedLevel) -> SpeedLevel:
        pairs = tuple(replace(pair, why=self._in_words(pair.why)) for pair in level.pairs)
        return replace(level, pairs=pairs)

    def _in_words(self, text: str) -> str:
        """The text with the sides as a reader calls them, instead of with the names of their runs."""
        alike = self.new.label == self.old.label
        sides = ((self.new, accuracy.NEW), (self.old, accuracy.BASELINE))
        for member, role in sorted(sides, key=lambda side: -len(side[0].name)):  # one may begin another
            text = text.replace(member.name, role if alike else member.label)
        return text


def _rules(new: _Member, old: _Member, force: bool, floor: float | None) -> Rules:
    separate = new.run is not old.run
    declared = rules_of(new.run.manifest, new.run.cells)
    # What a run that stopped by its figures may claim is bounded by the level of its looks.
    level = min(declared.look_alpha, rules_of(old.run.manifest).look_alpha)
    if floor is not None:
        smallest, measured = floor, {}
    else:
        smallest = SESSION_FLOOR if separate else declared.floor
        floors = ((side.name, (side.run.manifest.noise_floor or {}).get(side.label)) for side in (new, old))
        measured = {name: known for name, known in floors if known}
    return changed(
        declared,
        alpha=level,
        looks=(),
        floor=smallest,
        # Who says which difference counts has said that smaller ones do not: within it all is the same.
        same_within=max(declared.same_within, floor or 0.0),
        measured_floors=measured,
        separate_sessions=separate,
        forced=force,
    )


def _requests_differ(a: Series, b: Series) -> bool:
    """Whether they do in a repeat of both; requests that are not known do not."""
    sent = {cell.repeat: cell.workload_sha256 for cell in b.cells}
    pairs = ((cell.workload_sha256, sent.get(cell.repeat)) for cell in a.cells)
    return any(mine and other and mine != other for mine, other in pairs)


def _values(pairing: Pairing, finding: PairVerdict) -> tuple[float | None, float | None]:
    first, other = (estimate(side, finding.metric) for side in (pairing.a, pairing.b))
    return first.interval[1] if first else None, other.interval[1] if other else None
