"""Writes the verdicts of all pairs as one line: `sglang >> vllm > tgi ≈ lmdeploy`.

`>`: faster. `>>`: faster, and by at least a quarter over the whole interval. `≈`: same. `?`: not decided.
`∦`: not comparable. Different weights are named: `vllm[bf16] >> llamacpp[Q4_1] (different weights)`. If some
backends share theirs, each set of weights has a line of its own: `[bf16] vllm > sglang`.
A backend with failed runs comes last, with their number: a failed run ranks worst. After the line come the
runs that were left out, and the caveats of backends.
`≈` is not transitive: pairs about which the line would mislead a reader follow it in brackets.
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
    """Rank lines from the `findings` at one load in one metric, in the order of `estimates`.

    `weights` are those of `weights_of`; without them, lines do not mention weights. If some backends share
    theirs, there is a line for each set of weights.
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
    """The line, which names `weights`, and its groups; None with fewer than two backends to rank."""
    signs, failed = _signs(findings, rules), _failed(findings)
    involved = {label for finding in findings for label in (finding.a, finding.b)}
    known = involved.intersection((*estimates, *failed))
    signed = known.intersection(label for pair in signs for label in pair)
    # Where nothing else is known, all others are ahead of those that failed.
    labels = signed.union(failed) if len(signed) > 1 or not failed else known
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
    """Weights by label, as quantisation if that tells them apart, else as track; {} if none are known."""
    tracks = {cell.label: cell.track for cell in cells}
    if not any(tracks.values()):
        return {}
    short = {cell.label: cell.quantisation for cell in cells}
    apart = len(set(short.values())) == len(set(tracks.values()))
    return {label: str((short if apart else tracks)[label] or UNKNOWN) for label in tracks}


def caveats_of(cells: Sequence[CellResult]) -> dict[str, str]:
    """Caveats by label, for backends whose figures do not show what their name promises."""
    found = {cell.label: cell.conditions.settings.get("caveat") for cell in cells}
    return {label: caveat for label, caveat in found.items() if caveat}


def with_caveats(ranking: Ranking, caveats: Mapping[str, str]) -> Ranking:
    """Appends the caveats of the backends in the line to it."""
    ranked = {label for group in ranking.groups for label in group}
    remarks = "".join(f" ({label}: {caveat})" for label, caveat in caveats.items() if label in ranked)
    return replace(ranking, line=ranking.line + remarks)


def _failed(findings: Sequence[PairVerdict]) -> dict[str, str]:
    """`2 of 5 failed` by label, for backends with failed runs."""
    counts: dict[str, tuple[int, int]] = {}
    for finding in findings:
        for label, failed, runs in zip((finding.a, finding.b), finding.failed, finding.measured, strict=True):
            counts[label] = failed, runs
    return {label: f"{failed} of {runs} failed" for label, (failed, runs) in counts.items() if failed}


def _left_out(findings: Sequence[PairVerdict]) -> dict[str, str]:
    """`1 of 4 runs left out: not steady` by label, for backends with such runs.

    Pairs that were decided at unlike looks have unlike numbers of runs, and the largest number counts.
    """
    most: dict[str, tuple[int, str]] = {}
    for finding in findings:
        for label, out, runs in zip((finding.a, finding.b), finding.left_out, finding.measured, strict=True):
            if out and runs > most.get(label, (0, ""))[0]:
                most[label] = runs, left_out_words(out, runs)
    return {label: words for label, (_, words) in most.items()}


def _place(
    label: str, estimates: Mapping[str, float], metric: str, failed: Mapping[str, str]
) -> tuple[bool, bool, float]:
    """Key that sorts best first, backends with failures last, those without a figure at the very end."""
    value = estimates.get(label)
    better = -1 if better_of(metric) == "higher" else 1
    return label in failed, value is None, better * (value or 0.0)


def _signs(findings: Sequence[PairVerdict], rules: Rules) -> dict[tuple[str, str], str]:
    """Signs of each pair in both orders, `<` included. Pairs that cannot be compared have none."""
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
    """The sign that a reader infers between the two ends of this part of the line."""
    kinds = {sign[0] for sign in between}
    return next(kind for kind in (">", APART, "?", "≈") if kind in kinds)


def _circle(ordered: Sequence[str], signs: Signs, names: Mapping[str, str]) -> tuple[str, Groups] | None:
    """A text in place of a line if verdicts contradict the order of estimates, as unequal runs may."""
    against = [
        f"{ordered[j]} {signs[ordered[j], ordered[i]]} {ordered[i]}"
        for i, j in combinations(range(len(ordered)), 2)
        if signs.get((ordered[j], ordered[i])) in BETTER
    ]
    if not against:
        return None
    members = ", ".join(names[label] for label in ordered)
    return f"no order of {members}: the pairs contradict each other ({', '.join(against)})", (tuple(ordered),)
