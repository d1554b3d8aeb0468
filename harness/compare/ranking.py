"""Verdicts of all pairs to one line: `sglang >> vllm > tgi ≈ lmdeploy`.

`>`: faster. `>>`: faster, and the whole interval says by at least a quarter. `≈`: same. `?`: not decided.
`∦`: not comparable. Other weights are said: `vllm[bf16] >> llamacpp[Q4_1] (different weights)`.
`≈` is not transitive: what a reader would conclude wrongly from the line stands behind it in brackets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from harness.compare.observed import Cell
from harness.compare.rules import Rules
from harness.compare.verdict import Finding
from harness.plan import LoadPoint
from harness.spec.measures import MEASURES

BETTER = (">", ">>")
APART = "∦"  # not comparable

Signs = Mapping[tuple[str, str], str]
Groups = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    load: LoadPoint
    metric: str
    line: str
    groups: Groups  # best first; inside one nothing is shown to be better
    primary: bool
    weights: Mapping[str, str]  # by label, where they are not all the same

    def as_json(self) -> dict[str, Any]:
        return {
            "load": self.load._asdict(),
            "metric": self.metric,
            "line": self.line,
            "primary": self.primary,
            "groups": [list(group) for group in self.groups],
            "weights": dict(self.weights) or None,
        }


def rank(
    findings: Sequence[Finding],
    estimates: Mapping[str, float],
    load: LoadPoint,
    metric: str,
    rules: Rules,
    cells: Sequence[Cell] = (),
) -> Ranking | None:
    """`findings` of this load and metric; `estimates` by label give the order. None without two of them.

    `cells` tell which weights each label serves; without them nothing is said of weights.
    """
    signs = _signs(findings, rules)
    labels = [label for label in estimates if any(label in pair for pair in signs)]
    if len(labels) < 2:
        return None
    ordered = sorted(labels, key=estimates.__getitem__, reverse=MEASURES[metric] == "higher")
    weights = _weights([cell for cell in cells if cell["label"] in ordered])
    names = {label: f"{label}[{weights[label]}]" if weights else label for label in ordered}
    line, groups = _circle(ordered, signs, names) or _line(ordered, signs, names)
    line += " (different weights)" if weights else ""
    return Ranking(load, metric, line, groups, metric == rules.primary, weights)


def _weights(cells: Sequence[Cell]) -> dict[str, str]:
    """By label, in as few words as tell them apart; empty where all serve the same, or none says what."""
    tracks = {cell["label"]: cell.get("track") for cell in cells}
    if len(set(tracks.values())) < 2:
        return {}
    short = {cell["label"]: cell.get("quantisation") for cell in cells}
    apart = len(set(short.values())) == len(set(tracks.values()))
    return {label: str((short if apart else tracks)[label] or "unknown") for label in tracks}


def _signs(findings: Sequence[Finding], rules: Rules) -> dict[tuple[str, str], str]:
    """Both ways round, `<` included. Pairs that cannot be compared have none."""
    signs: dict[tuple[str, str], str] = {}
    for finding in findings:
        sign = _sign(finding, rules)
        if sign:
            signs[finding.a, finding.b] = sign
            signs[finding.b, finding.a] = sign.translate(str.maketrans("<>", "><"))
    return signs


def _sign(finding: Finding, rules: Rules) -> str:
    word, ratio = finding.verdict, finding.ratio
    if word in ("faster", "slower") and ratio is not None:
        least = min(max(bound, 1 / bound) for bound in (ratio.low, ratio.high))
        return (">" if word == "faster" else "<") * (2 if least >= 1 + rules.much else 1)
    return {"same": "≈", "not enough runs": "?"}.get(word, "")


def _line(ordered: Sequence[str], signs: Signs, names: Mapping[str, str]) -> tuple[str, Groups]:
    between = [signs.get(pair, APART) for pair in pairwise(ordered)]
    groups, text = [[ordered[0]]], names[ordered[0]]
    for label, sign in zip(ordered[1:], between, strict=True):
        text += f" {sign} {names[label]}"
        if sign in BETTER:
            groups.append([])
        groups[-1].append(label)
    exceptions = [
        f"{ordered[i]} {sign} {ordered[j]}"
        for i, j in combinations(range(len(ordered)), 2)
        if (sign := signs.get((ordered[i], ordered[j]), APART))[0] != _implied(between[i:j])
    ]
    return text + (f" ({', '.join(exceptions)})" if exceptions else ""), tuple(map(tuple, groups))


def _implied(between: Sequence[str]) -> str:
    """What a reader concludes about the ends of this stretch of the line."""
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
