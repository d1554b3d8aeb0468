"""Whether a cell holds enough: the answers and the time that the scenario declares and, in a closed loop,
waves."""

import math
from dataclasses import dataclass

import numpy as np

from harness.metrics.in_flight import times_in_system_ns
from harness.metrics.view import RequestView, Rows
from harness.model import Load, Minimum, Sample
from harness.records.layout import UNKNOWN

# Where a scenario declares none. 100 answers bound a p95 from above, and not a p99.
MIN_SECONDS, MIN_ANSWERS = 10.0, 100
_FASTER = 1.2  # times the pace of a cell at which another of the same load may go
_USUAL = Minimum(seconds=MIN_SECONDS, answers=MIN_ANSWERS)

# Waves that keep the bias of requests/s below 1% where the times of answers have a coefficient of variation
# of 1; it grows with its square (python -m tests.bench.rates). A window holds the short answers of its last
# waves whole and cuts the long ones.
WAVES_AT_CV_1 = 20


def sample(view: RequestView, minimum: Minimum | None) -> Sample:
    """`minimum` is None in runs from before it was declared."""
    limits, rows = minimum or _USUAL, _sent(view)
    return Sample(
        seconds=float(rows["end_ns"].max() - rows["sent_ns"].min()) / 1e9 if len(rows) else 0.0,
        answers=len(view.answers),
        min_seconds=float(limits.seconds),
        min_answers=limits.answers,
    )


def requests_needed(view: RequestView, found: Sample) -> int | None:
    """Requests for the least time and answers, at the pace of this cell; None if it has no pace. Another cell
    may be faster.
    """
    times = times_needed(found, _FASTER)
    return None if times is None else math.ceil(len(_sent(view)) * times)


def times_needed(found: Sample, faster: float = 1.0) -> float | None:
    """Times as much as this cell has, for a cell that is so many times `faster`; None if it has no pace."""
    if not found.answers or found.seconds <= 0:
        return None
    return max(found.min_answers / found.answers, faster * found.min_seconds / found.seconds)


def _sent(view: RequestView) -> Rows:
    rows: Rows = view.measured_requests[view.measured_requests["sent_ns"] != UNKNOWN]
    return rows


@dataclass(frozen=True, slots=True)
class Waves:
    """A wave is as many answers as there are slots."""

    measured: float
    cv: float  # of the times in system
    slots: int

    @property
    def needed(self) -> float:
        return WAVES_AT_CV_1 * self.cv**2

    @property
    def requests_needed(self) -> int:
        return math.ceil(self.needed * self.slots)


def waves(view: RequestView, load: Load) -> Waves | None:
    """None for an open loop, and if no answer took any time. None too where a rate has no bias: of a single
    slot, and of a batch that is declared to be sent at once, whose window cuts no answer."""
    slots = load.slots
    times_ns = times_in_system_ns(view.answers)
    if slots is None or slots < 2 or not times_ns.any():
        return None
    if load.start_declared == "together" and np.count_nonzero(view.requests["sent_ns"] != UNKNOWN) <= slots:
        return None
    return Waves(len(times_ns) / slots, float(times_ns.std() / times_ns.mean()), slots)
