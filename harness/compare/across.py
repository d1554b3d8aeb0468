"""Runs of any time and machine held against a baseline: what differs, and verdicts where that allows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from harness.compare.manifests import Difference, Side, differences
from harness.compare.observed import Cell, Samples, Series, labels, loads, series
from harness.compare.ratio import estimate
from harness.compare.rules import SESSION_FLOOR, Rules, rules_of
from harness.compare.verdict import Finding, judge
from harness.errors import SpecError
from harness.spec.strict import nearest

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    name: str  # unique among those compared
    manifest: Mapping[str, Any]
    cells: Sequence[Cell]  # of its summary.json
    samples: Mapping[str, Samples]  # by the name of the cell; empty where the records were not copied along

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
    def cells(self) -> list[Cell]:
        return [{**cell, "label": self.name} for cell in self.run.cells if cell["label"] == self.label]


def compare_runs(
    runs: Sequence[Run], baseline: str | None = None, *, force: bool = False, floor: float | None = None
) -> Json:
    """One document about all pairs; in each, `a` is the new one and `b` the baseline.

    `baseline` names a run or a backend; without it the first run is it, or of a single run the first backend.
    `floor` replaces the smallest difference that counts, 2 % inside one run and 5 % between two.
    """
    pairs = list(_pairs(runs, baseline))
    return {
        "runs": [_about(run) for run in runs],
        "baseline": pairs[0][1].run.name if pairs else None,
        "pairs": [_pair(new, old, force, floor) for new, old in pairs],
    }


def _about(run: Run) -> Json:
    host = run.manifest.get("host") or {}
    return {
        "name": run.name,
        "run": run.manifest.get("run"),
        "created_utc": run.manifest.get("created_utc"),
        "hostname": host.get("hostname"),
        "scenario": run.manifest["scenario"]["scenario"]["name"],
        "state": run.manifest.get("state"),
        "simulated": any(cell.get("simulated") for cell in run.cells),
    }


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
    """Each backend with itself; where the runs share none, each with each."""
    common = [label for label in run.labels if label in old_run.labels]
    if common:
        yield from ((_Member(run, label), _Member(old_run, label)) for label in common)
    else:
        yield from ((_Member(run, a), _Member(old_run, b)) for b in old_run.labels for a in run.labels)


def _pair(new: _Member, old: _Member, force: bool, floor: float | None) -> Json:
    rules = _rules(new, old, force, floor)
    found = differences(Side(old.run.manifest, old.label), Side(new.run.manifest, new.label))
    refused = "; ".join(one.text for one in found if one.matters) or None
    cells = [*new.cells, *old.cells]
    findings: list[Json] = []
    for load in loads(cells):
        a, b = (_one(series(member.cells, load, member.samples), member.name) for member in (new, old))
        if a.cells and b.cells:
            findings += [
                {**one.as_json(), "values": _values(a, b, one)} for one in judge(a, b, load, rules, refused)
            ]
    return {
        "a": {"run": new.run.name, "label": new.label},
        "b": {"run": old.run.name, "label": old.label},
        "differences": [_difference(one) for one in found],
        "refused": None if force else refused,
        "findings": findings,
        "verdict_rules": rules.as_json(),
    }


def _rules(new: _Member, old: _Member, force: bool, floor: float | None) -> Rules:
    apart = new.run is not old.run
    declared = rules_of(new.run.manifest)
    smallest = floor if floor is not None else SESSION_FLOOR if apart else declared.floor
    return replace(declared, floor=smallest, apart=apart, forced=force)


def _one(rows: Sequence[Series], name: str) -> Series:
    return next(iter(rows), Series(name, (), 0))


def _values(a: Series, b: Series, finding: Finding) -> list[float | None]:
    found = (estimate(one, finding.metric) for one in (a, b))
    return [one.interval[1] if one else None for one in found]


def _difference(one: Difference) -> Json:
    return {"what": one.what, "baseline": one.baseline, "new": one.new, "matters": one.matters}


def regressions(document: Mapping[str, Any]) -> list[Json]:
    """Findings that say the new one is slower."""
    return [one for one in _findings(document) if one["verdict"] == "slower"]


def refused(document: Mapping[str, Any]) -> bool:
    """Whether a pair could not be compared in anything: a gate must not pass over it."""
    return not document["pairs"] or any(
        all(one["verdict"] == "not comparable" for one in pair["findings"]) for pair in document["pairs"]
    )


def _findings(document: Mapping[str, Any]) -> Iterator[Json]:
    return chain.from_iterable(pair["findings"] for pair in document["pairs"])
