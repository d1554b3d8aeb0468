"""Noise of a machine: how far apart equal engines are measured on it."""

from collections.abc import Iterable, Iterator

from harness.model import Noise, PairVerdict


def noise(findings: Iterable[PairVerdict]) -> Iterator[Noise]:
    """Takes the pairs `NAME#a` and `NAME#b` of one backend from the findings of a run with --aa.

    `difference` is its size as a share. `difference_upper` is the farther end of its interval, and the floor
    of later verdicts: one experiment does not know more exactly how far apart equal engines may be.
    """
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
