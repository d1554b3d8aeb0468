"""Whether a cell holds as many answers, over as long a time, as the scenario declares to be enough."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import answered, measured
from harness.model import Sample
from harness.record import UNKNOWN

# Where a scenario declares none. 100 answers bound a p95 from above, and not a p99.
MIN_SECONDS, MIN_ANSWERS = 10.0, 100


@dataclass(frozen=True, slots=True)
class Amount:
    seconds: float  # first measured send to the end of the last measured request
    answers: int
    requests: int  # measured ones, answered or not
    min_seconds: float
    min_answers: int

    @property
    def is_enough(self) -> bool:
        return self.seconds >= self.min_seconds and self.answers >= self.min_answers

    @property
    def requests_needed(self) -> int | None:
        """At the pace and the share of answers of this cell; None where there is no pace."""
        if not self.answers or self.seconds <= 0:
            return None
        times = max(self.min_answers / self.answers, self.min_seconds / self.seconds)
        return math.ceil(self.requests * times)

    @property
    def sample(self) -> Sample:
        return Sample(
            seconds=self.seconds,
            answers=self.answers,
            min_seconds=self.min_seconds,
            min_answers=self.min_answers,
        )


def amount(requests: NDArray[np.void], minimum: Mapping[str, Any] | None) -> Amount:
    """`minimum` as cell.json has it; None in runs of before it was declared."""
    limits = minimum or {"seconds": MIN_SECONDS, "answers": MIN_ANSWERS}
    rows = requests[measured(requests) & (requests["sent_ns"] != UNKNOWN)]
    seconds = float(rows["end_ns"].max() - rows["sent_ns"].min()) / 1e9 if len(rows) else 0.0
    return Amount(
        seconds,
        int(np.count_nonzero(answered(requests))),
        len(rows),
        float(limits["seconds"]),
        int(limits["answers"]),
    )
