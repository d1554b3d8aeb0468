"""The Prometheus text format, as far as reading totals needs it."""

import re
from collections.abc import Iterable, Mapping

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{.*\})?\s+(\S+)(?:\s+\d+)?")


def totals(text: str, series: Iterable[str]) -> Mapping[str, float]:
    """Sum over all label sets of each of `series` that occurs. Raises ValueError for what is no number."""
    wanted = set(series)
    sums: dict[str, float] = {}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line.strip())
        if match and match[1] in wanted:
            sums[match[1]] = sums.get(match[1], 0.0) + float(match[2])
    return sums
