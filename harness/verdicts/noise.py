"""Says what a run of each backend against itself says: how far apart equal engines come out on this
machine.
"""

from collections.abc import Iterator, Sequence

from harness.model import Noise, PairVerdict


def noise(findings: Sequence[PairVerdict]) -> tuple[Noise, ...]:
    """Computes the noise from the `comparison` of a run with labels `NAME#a` and `NAME#b`; pairs of one
    engine only.

    `difference`: how large it was, as a share. `difference_upper`: the farther end of its interval, which is
    what later verdicts ask for more than: one experiment says no better how far equals may come out.
    """
    return tuple(_noise(findings))


def _noise(findings: Sequence[PairVerdict]) -> Iterator[Noise]:
    for finding in findings:
        name = finding.a.partition("#")[0]
        if finding.ratio is None or name != finding.b.partition("#")[0]:
            continue
        low, middle, high = finding.ratio
        yield Noise(
            backend=name,
            load=finding.load,
            metric=finding.metric,
            ratio=finding.ratio,
            difference=max(middle, 1 / middle) - 1,
            difference_upper=max(high, 1 / low) - 1,
            smallest_detectable=finding.smallest_detectable,
            verdict=finding.verdict,
        )
