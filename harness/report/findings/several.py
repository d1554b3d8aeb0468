"""Several runs as one summary per backend, so that they are worded and drawn as one run is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from harness.errors import SpecError
from harness.model import (
    CellResult,
    ComparedPair,
    Estimate,
    PairVerdict,
    RunComparison,
    Summary,
)
from harness.model.grouping import grouped
from harness.report.findings.against import run_names
from harness.report.wording import plain
from harness.verdicts.baseline import Run
from harness.verdicts.knee import knees


@dataclass(frozen=True, slots=True)
class Several:
    """`whole` has all that may be drawn on one axis; `families` what was compared, by backend."""

    whole: Summary
    families: dict[str, Summary]
    names: dict[str, str]  # of each run: `2026-11-22`
    refused: tuple[ComparedPair, ...]


def several(runs: Sequence[Run], document: RunComparison) -> Several:
    """Raises SpecError if no pair of the runs can be compared: then nothing may share an axis."""
    names = run_names(document.runs)
    kept = [pair for pair in document.pairs if not why_refused(pair)]
    refused = tuple(pair for pair in document.pairs if pair not in kept)
    if not kept:
        force = "; its --force compares all the same" if any(map(_by_conditions, refused)) else ""
        raise SpecError(
            f"these runs cannot be compared: {_reason(document)}",
            where=", ".join(run.name for run in runs),
            hint=f"`bench compare RUN RUN` lists every difference{force}",
        )
    families = grouped((pair.b.label if pair.a.label == pair.b.label else "", pair) for pair in kept)
    return Several(
        _merged(runs, kept, names),
        {label: _merged(runs, pairs, names) for label, pairs in families.items()},
        names,
        refused,
    )


def why_refused(pair: ComparedPair) -> str:
    """The reason nothing of this pair is compared, or ""."""
    if pair.refused:
        return pair.refused
    if not pair.findings:
        return "no load point in common"
    if all(finding.verdict == "not comparable" for finding in pair.findings):
        return "; ".join(dict.fromkeys(finding.why for finding in pair.findings if finding.why))
    return ""


def _by_conditions(pair: ComparedPair) -> bool:
    """Whether a load was measured of both, and unequal conditions forbid the comparison."""
    return any(not any(finding.failed) for finding in pair.findings)


def _reason(document: RunComparison) -> str:
    reasons = [why_refused(pair) for pair in document.pairs]
    return plain("; ".join(dict.fromkeys(reasons)) or "they share no backend", 400)


def _merged(runs: Sequence[Run], pairs: Sequence[ComparedPair], names: dict[str, str]) -> Summary:
    """The cells of these pairs, each backend with the name of its run."""
    members = dict.fromkeys((side.run, side.label) for pair in pairs for side in (pair.b, pair.a))
    wholes = {run.name: run.summary for run in runs}
    cells: list[CellResult] = []
    estimates: list[Estimate] = []
    for name, label in members:
        shown = f"{label}, {names[name]}"
        cells += [replace(cell, label=shown) for cell in wholes[name].cells if cell.label == label]
        estimates += [
            replace(estimate, label=shown) for estimate in wholes[name].estimates if estimate.label == label
        ]
    first = wholes[pairs[0].b.run]
    return replace(
        first,
        cells=tuple(cells),
        estimates=tuple(estimates),
        comparison=tuple(_verdicts(pairs, names)),
        knees=knees(cells),
        verdict_rules=pairs[0].verdict_rules,
        simulated=any(cell.simulated for cell in cells),
        **_NOT_OF_SEVERAL,
    )


# What one run alone can say.
_NOT_OF_SEVERAL: dict[str, object] = {
    "scaling": {}, "unequal": (), "noise": (), "ranking": {}, "rankings": (), "stopping": None,
    "capacity": None, "workload_card": None, "agreement": None, "warnings": (), "claims": (),
}  # fmt: skip


def _verdicts(pairs: Sequence[ComparedPair], names: dict[str, str]) -> Iterator[PairVerdict]:
    for pair in pairs:
        a, b = (f"{side.label}, {names[side.run]}" for side in (pair.a, pair.b))
        yield from (replace(finding, a=a, b=b) for finding in pair.findings)
