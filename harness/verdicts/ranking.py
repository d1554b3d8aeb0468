"""Verdicts of all pairs to one line: `sglang >> vllm > tgi ≈ lmdeploy`.

`>`: faster. `>>`: faster, and the whole interval says by at least a quarter. `≈`: same. `?`: not decided.
`∦`: not comparable. Other weights are said: `vllm[bf16] >> llamacpp[Q4_1] (different weights)`. Where some
backends share theirs, each weights have a line of their own: `[bf16] vllm > sglang`.
A backend of which runs failed comes last, with their number: a failed run ranks worst. Runs that were left
out are counted behind the line, and what the figures of a backend do not show is said there.
`≈` is not transitive: what a reader would conclude wrongly from the line stands behind it in brackets.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from types import MappingProxyType

from msgspec.structs import replace

from harness.model import CellResult, LoadPoint, PairVerdict, Ranking, better_of
from harness.verdicts.pairs import left_out_words
from harness.verdicts.rules import Rules

BETTER = (">", ">>")
APART = "∦"  # not comparable
UNKNOWN = "unknown"
NO_WEIGHTS: Mapping[str, str] = MappingProxyType({})

Signs = Mapping[tuple[str, str], str]
Groups = tuple[tuple[str, ...], ...]


def rank(
    findings: Sequence[PairVerdict],
    estimates: Mapping[str, float],
    load: LoadPoint,
    metric: str,
    rules: Rules,
    weights: Mapping[str, str] = NO_WEIGHTS,
) -> tuple[Ranking, ...]:
    """`findings` of this load and metric; `estimates` by label give the order. A ranking takes two backends.

    `weights` of `weights_of`: without them nothing is said of weights. Backends that share theirs are ranked
    among themselves.
    """
    served = {label: weights.get(label, UNKNOWN) for finding in findings for label in (finding.a, finding.b)}
    shared = Counter(served.values())
    differ = len(shared) > 1
    within = differ and max(shared.values()) > 1 and UNKNOWN not in shared
    rankings = []
    for only in sorted(shared) if within else [""]:
        part = [finding for finding in findings if not only or served[finding.a] == served[finding.b] == only]
        weights_shown = {} if within or not differ else served
        if ranked := _ranked(part, estimates, metric, rules, weights_shown):
            line, groups = ranked
            ranking = Ranking(
                load=load,
                metric=metric,
                line=f"[{only}] {line}" if only else line,
                primary=metric == rules.primary,
                groups=groups,
                weights={label: served[label] for group in groups for label in group} if differ else None,
            )
            rankings.append(ranking)
    return tuple(rankings)


def _ranked(
    findings: Sequence[PairVerdict],
    estimates: Mapping[str, float],
    metric: str,
    rules: Rules,
    weights: Mapping[str, str],
) -> tuple[str, Groups] | None:
    """`weights` are said in the line."""
    signs, failed = _signs(findings, rules), _failed(findings)
    involved = {label for finding in findings for label in (finding.a, finding.b)}
    known = involved.intersection((*estimates, *failed))
    labels = [label for label in known if failed or any(label in pair for pair in signs)]
    if len(labels) < 2:
        return None
    ordered = sorted(labels, key=lambda label: (*_place(label, estimates, metric, failed), label))
    names = {label: f"{label}[{weights[label]}]" if weights else label for label in ordered}
    line, groups = _circle(ordered, signs, names) or _line(ordered, signs, names, failed)
    line += " (different weights)" if weights else ""
    left_out = _left_out(findings)
    line += "".join(f" ({names[label]}: {left_out[label]})" for label in ordered if label in left_out)
    if alone := sorted(involved - set(ordered)):
        line += f" (not comparable: {', '.join(alone)})"
    return line, groups


def weights_of(cells: Sequence[CellResult]) -> dict[str, str]:
    """Returns the weights by label, in as few words as tell them apart; empty where none says which."""
    tracks = {cell.label: cell.track for cell in cells}
    if not any(tracks.values()):
        return {}
    short = {cell.label: cell.quantisation for cell in cells}
    apart = len(set(short.values())) == len(set(tracks.values()))
    return {label: str((short if apart else tracks)[label] or UNKNOWN) for label in tracks}


def caveats_of(cells: Sequence[CellResult]) -> dict[str, str]:
    """Returns the caveats by label, of those whose figures do not show what their name promises."""
    found = {cell.label: cell.conditions.settings.get("caveat") for cell in cells}
    return {label: caveat for label, caveat in found.items() if caveat}


def with_caveats(ranking: Ranking, caveats: Mapping[str, str]) -> Ranking:
    """Each behind the line, of the backends that stand in it."""
    ranked = {label for group in ranking.groups for label in group}
    remarks = "".join(f" ({label}: {caveat})" for label, caveat in caveats.items() if label in ranked)
    return replace(ranking, line=ranking.line + remarks)


def _failed(findings: Sequence[PairVerdict]) -> dict[str, str]:
    """`2 of 5 failed`, by label, of those where any did."""
    counts: dict[str, tuple[int, int]] = {}
    for finding in findings:
        for label, failed, runs in zip((finding.a, finding.b), finding.failed, finding.measured, strict=True):
            counts[label] = failed, runs
    return {label: f"{failed} of {runs} failed" for label, (failed, runs) in counts.items() if failed}


def _left_out(findings: Sequence[PairVerdict]) -> dict[str, str]:
    """`1 of 4 runs left out: not steady`, by label, of those where any was."""
    return {
        label: left_out_words(out, runs)
        for finding in findings
        for label, out, runs in zip((finding.a, finding.b), finding.left_out, finding.measured, strict=True)
        if out
    }


def _place(
    label: str, estimates: Mapping[str, float], metric: str, failed: Mapping[str, str]
) -> tuple[bool, bool, float]:
    """Sorts best first; failures last, without any figure at the very end."""
    value = estimates.get(label)
    better = -1 if better_of(metric) == "higher" else 1
    return label in failed, value is None, better * (value or 0.0)


def _signs(findings: Sequence[PairVerdict], rules: Rules) -> dict[tuple[str, str], str]:
    """Both ways round, `<` included. Pairs that cannot be compared have none."""
    signs: dict[tuple[str, str], str] = {}
    for finding in findings:
        sign = _sign(finding, rules)
        if sign:
            signs[finding.a, finding.b] = sign
            signs[finding.b, finding.a] = sign.translate(str.maketrans("<>", "><"))
    return signs


def _sign(finding: PairVerdict, rules: Rules) -> str:
    word, ratio = finding.verdict, finding.ratio
    if word in ("faster", "slower") and ratio is not None:
        least = min(max(bound, 1 / bound) for bound in (ratio.low, ratio.high))
        return (">" if word == "faster" else "<") * (2 if least >= 1 + rules.large_difference else 1)
    return {"same": "≈", "not enough runs": "?"}.get(word, "")


def _line(
    ordered: Sequence[str], signs: Signs, names: Mapping[str, str], failed: Mapping[str, str]
) -> tuple[str, Groups]:
    between = [signs.get(pair, APART) for pair in pairwise(ordered)]
    entries = [f"{names[label]} ({failed[label]})" if label in failed else names[label] for label in ordered]
    groups, text = [[ordered[0]]], entries[0]
    for label, words, sign in zip(ordered[1:], entries[1:], between, strict=True):
        text += f" {sign} {words}"
        if sign in BETTER:
            groups.append([])
        groups[-1].append(label)
    exceptions = [
        f"{ordered[i]} {sign} {ordered[j]}"
        for i, j in combinations(range(len(ordered)), 2)
        if (sign := signs.get((ordered[i], ordered[j]), APART))[0] != _implied(between[i:j])
        and not (sign == APART and ordered[j] in failed)  # its number of failures says so
    ]
    return text + (f" ({', '.join(exceptions)})" if exceptions else ""), tuple(map(tuple, groups))


def _implied(between: Sequence[str]) -> str:
    """Returns what a reader concludes about the ends of this stretch of the line."""
    kinds = {sign[0] for sign in between}
    return next(kind for kind in (">", APART, "?", "≈") if kind in kinds)


def _circle(ordered: Sequence[str], signs: Signs, names: Mapping[str, str]) -> tuple[str, Groups] | None:
    """Verdicts against the order of the estimates, as unequal sets of runs may give them: no line then."""
    against = [
        f"{ordered[j]} {signs[ordered[j], ordered[i]]} {ordered[i]}"
        for i, j in combinations(range(len(ordered)), 2)
        if signs.get((ordered[j], ordered[i])) in BETTER
    ]
    if not against:
        return None
    members = ", ".join(names[label] for label in ordered)
    return f"no order of {members}: the pairs contradict each other ({', '.join(against)})", (tuple(ordered),)
