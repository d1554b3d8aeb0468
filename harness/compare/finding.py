"""What was found about one pair of backends at one load in one metric, as summary.json holds it."""

from dataclasses import dataclass
from typing import Any, Literal

from harness.compare.ratio import Method
from harness.plan import LoadPoint
from harness.spec.measures import MEASURES
from harness.stats.runs import Interval

Word = Literal["faster", "slower", "same", "not enough runs", "not comparable"]


@dataclass(frozen=True, slots=True)
class Finding:
    """About `a` against `b`; ratios and differences are a over b and a minus b."""

    a: str
    b: str
    load: LoadPoint
    metric: str
    verdict: Word
    why: str
    runs: tuple[int, int]
    measured: tuple[int, int] = (0, 0)  # runs of any kind, INVALID ones included
    failed: tuple[int, int] = (0, 0)  # runs that have no figure by the engine's doing
    paired: bool = False
    method: Method = "runs"
    ratio: Interval | None = None
    family_ratio: Interval | None = None  # at the level at which the family allowed for the word
    difference: Interval | None = None
    p_holm: float | None = None
    p_same_holm: float | None = None
    detectable: float | None = None  # a true difference of this size is found in 4 of 5 such experiments
    primary: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "load": self.load._asdict(),
            "metric": self.metric,
            "better": MEASURES[self.metric],
            "ratio": triple(self.ratio),
            "family_ratio": triple(self.family_ratio),
            "difference": triple(self.difference),
            "runs": list(self.runs),
            "measured": list(self.measured),
            "failed": list(self.failed),
            "paired": self.paired,
            "method": self.method,
            "verdict": self.verdict,
            "why": self.why,
            "primary": self.primary,
            "p_holm": self.p_holm,
            "p_same_holm": self.p_same_holm,
            "smallest_detectable": self.detectable,
        }


def triple(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.estimate, interval.high]
