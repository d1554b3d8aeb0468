"""Vectors and scores of all backends: whether they are the same ones. Pure."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import sqrt
from statistics import median

from harness.model import UNSET, StoredValues, ValuesAgreement, ValuesPair
from harness.model.grouping import grouped

# A GGUF file in 16 bits gave 0.999999 and more against the original weights. Fewer bits were not measured.
LEAST_COSINE = 0.98
LEAST_RANK_CORRELATION = 0.9  # scores of near ties change places with the rounding
_ROUNDING = 0.02  # of a squared length, in 16 bits

Values = Mapping[str, Sequence[float]]


def compare_values(asked: Mapping[str, StoredValues]) -> ValuesAgreement:
    """`asked`: by backend, at least one."""
    first = next(iter(asked.values()))
    reference = next((label for label, values in asked.items() if values.library), UNSET)
    limit = LEAST_COSINE if first.gives == "vectors" else LEAST_RANK_CORRELATION
    own = [
        _pair((label, values.alone), (label, values.together), first.gives, limit)
        for label, values in asked.items()
        if label != reference
    ]
    between = [
        _pair((a, asked[a].alone), (b, asked[b].alone), first.gives, limit) for a, b in combinations(asked, 2)
    ]
    return ValuesAgreement(
        gives=first.gives,
        texts=max(len(values.alone) for values in asked.values()),
        dimensions={
            label: max(map(len, values.alone.values()), default=0) for label, values in asked.items()
        },
        pairs=(*own, *between),
        normalised={
            label: _normalised(values) for label, values in asked.items() if values.gives == "vectors"
        },
        too_long={label: values.too_long for label, values in asked.items() if values.too_long},
        reference=reference,
    )


def _pair(first: tuple[str, Values], second: tuple[str, Values], gives: str, limit: float) -> ValuesPair:
    (a, of_a), (b, of_b) = first, second
    both = [name for name in of_a if name in of_b]
    measure = cosine if gives == "vectors" else rank_correlation
    found = [value for name in both if (value := measure(of_a[name], of_b[name])) is not None]
    least = min(found, default=None)
    return ValuesPair(
        a=a,
        b=b,
        compared=len(both),
        measure="cosine" if gives == "vectors" else "rank correlation",
        median=median(found) if found else None,
        least=least,
        limit=limit,
        alike=least is not None and len(found) == len(both) and least >= limit,
    )


def _normalised(values: StoredValues) -> bool:
    return all(abs(sum(x * x for x in vector) - 1) < _ROUNDING for vector in values.alone.values())


def cosine(a: Sequence[float], b: Sequence[float]) -> float | None:
    """None where they have different sizes or no direction."""
    sizes = sqrt(sum(x * x for x in a)) * sqrt(sum(x * x for x in b))
    if len(a) != len(b) or not 0 < sizes < float("inf"):
        return None
    return sum(x * y for x, y in zip(a, b, strict=True)) / sizes


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's; equal scores share the mean of their places. None where all scores of one are equal."""
    if len(a) != len(b):
        return None
    centre = (len(a) - 1) / 2
    return cosine([rank - centre for rank in _places(a)], [rank - centre for rank in _places(b)])


def _places(scores: Sequence[float]) -> list[float]:
    places = grouped((score, rank) for rank, score in enumerate(sorted(scores)))
    return [sum(places[score]) / len(places[score]) for score in scores]
