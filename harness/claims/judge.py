"""Each claim that a run is about: what was stated, what was measured, what follows, what is not the same.

The limits of a claim are compared with an interval: inside is reproduced, outside is contradicted, anything
else decides nothing. So does hardware of another kind than the claim's.
"""

import math
from collections.abc import Iterator, Sequence

from harness.claims.catalog import Catalog, Claim
from harness.claims.run_context import RunContext, Triple, context_of
from harness.model import (
    ClaimFinding,
    ClaimResult,
    ClaimVerdict,
    LoadPoint,
    Manifest,
    PairVerdict,
    Summary,
    unstated_words,
)
from harness.model.grouping import grouped

OPEN: ClaimVerdict = "not decidable here"


def judge(summary: Summary, manifest: Manifest, catalog: Catalog) -> list[ClaimResult]:
    """The `claims` of summary.json; `summary` needs its cells, estimates and comparison.

    Simulated engines reproduce nothing and are not looked at.
    """
    context = context_of(summary, manifest, catalog)
    return [entry for claim in catalog.claims if (entry := _entry(claim, context, catalog))]


def _entry(claim: Claim, context: RunContext, catalog: Catalog) -> ClaimResult | None:
    """None where the run is not about it."""
    if claim.needs is not None or claim.measure is None or not context.is_about(claim):
        return None
    findings = list(_found(claim, context))
    if not findings:
        return None
    elsewhere = context.elsewhere(claim)
    verdict, why = (OPEN, elsewhere) if elsewhere else _together(findings)
    source, unstated = catalog.sources[claim.source], context.unstated(claim)
    conflicts = (conflict for conflict in catalog.conflict if claim.id in conflict.claims)
    return ClaimResult(
        id=claim.id,
        says=claim.says,
        source=source.title,
        url=source.url,
        kind=claim.kind,
        measure=claim.measure,
        verdict=verdict,
        why=why,
        found=tuple(findings),
        stated_under=claim.stated_under,
        differs=(*(unstated_words(*conflict) for conflict in unstated.items()), *context.others(claim)),
        unstated=unstated,
        conflicts=tuple(f"{conflict.topic} ({conflict.says})" for conflict in conflicts),
    )


def _together(findings: Sequence[ClaimFinding]) -> tuple[ClaimVerdict, str]:
    """The loads together. A load that decides nothing changes no verdict of the other loads."""
    if len(findings) == 1:
        return findings[0].verdict, findings[0].why
    found = {finding.verdict for finding in findings}
    why = "; ".join(_places(findings, word) for word in ("reproduced", "contradicted", OPEN) if word in found)
    loads = {finding.load for finding in findings}
    words = {_at_load([finding.verdict for finding in findings if finding.load == load]) for load in loads}
    decided = words - {OPEN}
    return decided.pop() if len(decided) == 1 else OPEN, why


def _at_load(words: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """An order holds where all its pairs do, and one pair can refute it."""
    if "contradicted" in words:
        return "contradicted"
    return OPEN if OPEN in words else "reproduced"


def _places(findings: Sequence[ClaimFinding], word: ClaimVerdict) -> str:
    """Pairs and loads, by verdict."""
    mine = grouped((finding.about, finding.load.label) for finding in findings if finding.verdict == word)
    return f"{word}: " + ", ".join(f"{about} at {' '.join(loads)}" for about, loads in mine.items())


def _found(claim: Claim, context: RunContext) -> Iterator[ClaimFinding]:
    assert claim.measure is not None
    for load in context.loads:
        if not claim.takes(load.kind, load.value):
            continue
        if claim.kind in ("ratio", "order"):
            yield from _pairs(claim, context, load)
            continue
        (system,) = claim.of
        label = context.names.get(system)
        if label is None:
            continue
        measured = context.estimate(label, load, claim.measure)
        if claim.kind == "scaling":
            measured = _over(measured, context.estimate(label, LoadPoint("concurrency", 1), claim.measure))
        yield _finding(label, load, claim.limits, measured, *_judged(claim.limits, measured))


def _pairs(claim: Claim, context: RunContext, load: LoadPoint) -> Iterator[ClaimFinding]:
    assert claim.measure is not None
    for better, worse, low, high in claim.pairs(context.names.keys()):
        a, b = context.names[better], context.names[worse]
        measured = context.gain(a, b, load, claim.measure)
        finding = context.finding(a, b, load, claim.measure)
        verdict, why = _judged((low, high), measured)
        if finding and _says_nothing(finding):
            measured, verdict, why = None, OPEN, f"{finding.verdict}: {finding.why}"
        elif finding and finding.verdict == "same" and low == 1.0:
            verdict, why = "contradicted", "the same within the noise"
        yield _finding(f"{a} / {b}", load, (low, high), measured, verdict, why)


def _says_nothing(finding: PairVerdict) -> bool:
    """Whether a finding decides nothing, and the estimates, which are of all runs, cannot replace it."""
    return finding.verdict == "not comparable" or (finding.ratio is None and any(finding.left_out))


def _judged(stated: tuple[float, float], measured: Triple | None) -> tuple[ClaimVerdict, str]:
    """The verdict on an interval, and why."""
    low, high = stated
    if measured is None:
        return OPEN, "no interval: too few runs, or not reported"
    if measured[0] >= low and measured[2] <= high:
        return "reproduced", "the whole interval fits the claim"
    if measured[2] < low or measured[0] > high:
        return "contradicted", "the whole interval lies outside the claim"
    return OPEN, "the interval reaches over the limit of the claim: more runs are needed"


def _finding(
    about: str,
    load: LoadPoint,
    stated: tuple[float, float],
    measured: Triple | None,
    verdict: ClaimVerdict,
    why: str,
) -> ClaimFinding:
    low, high = stated
    limits = (low, None if math.isinf(high) else high)
    return ClaimFinding(about=about, load=load, stated=limits, measured=measured, verdict=verdict, why=why)


def _over(high: Triple | None, low: Triple | None) -> Triple | None:
    """The widest interval that both allow."""
    if high is None or low is None or low[0] <= 0:
        return None
    return high[0] / low[2], high[1] / low[1], high[2] / low[0]
