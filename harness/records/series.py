"""Samples taken during the load: named series on the cell's clock.

Times are nanoseconds on CLOCK_MONOTONIC since the cell's t0, like those of the records. A negative time is
before the first request, when the engine was up and idle. docs/telemetry.md lists the series.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-9


class Samples(NamedTuple):
    """One series in order of time. A value that could not be read has no sample: unknown is not zero."""

    at_ns: NDArray[np.int64]
    values: NDArray[np.float64]

    def between(self, start_ns: int, end_ns: int) -> "Samples":
        """The samples from `start_ns` to `end_ns`, both included."""
        first, last = np.searchsorted(self.at_ns, (start_ns, end_ns + 1))
        return Samples(self.at_ns[first:last], self.values[first:last])


NOTHING = Samples(np.zeros(0, np.int64), np.zeros(0, np.float64))


@dataclass(frozen=True, slots=True)
class Telemetry:
    series: Mapping[str, Samples] = field(default_factory=dict)

    def get(self, name: str) -> Samples:
        """The samples of a series; empty if it was never read."""
        return self.series.get(name, NOTHING)

    def between(self, start_ns: int, end_ns: int) -> "Telemetry":
        """The samples of every series from `start_ns` to `end_ns`, both included."""
        return Telemetry({name: samples.between(start_ns, end_ns) for name, samples in self.series.items()})

    def of(self, prefix: str) -> "Telemetry":
        """The series whose names begin with `prefix.`, by the rest of their names."""
        below = f"{prefix}."
        return Telemetry(
            {
                name.removeprefix(below): samples
                for name, samples in self.series.items()
                if name.startswith(below)
            }
        )

    def matching(self, prefix: str, suffix: str) -> Iterator[tuple[str, Samples]]:
        """Yields the part of each matching name between `prefix.` and `.suffix`, and its samples."""
        for name, samples in self.series.items():
            if name.startswith(f"{prefix}.") and name.endswith(f".{suffix}"):
                yield name[len(prefix) + 1 : -len(suffix) - 1], samples


def node_series(address: str) -> str:
    """Prefix of the series that a load node sampled on itself."""
    return f"node.{address}"


def unbroken(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of a counter as if it had never restarted at zero."""
    steps = np.where(falls(values), values[1:], np.diff(values))
    joined: NDArray[np.float64] = values[:1].sum() + np.concatenate([values[:1] * 0, np.cumsum(steps)])
    return joined


def falls(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a counter falls in each step, which means that it restarted.

    Seconds and joules are sums of fractions, so rounding is no fall.
    """
    return np.diff(values) < -_ROUNDING * np.abs(values[:-1])
