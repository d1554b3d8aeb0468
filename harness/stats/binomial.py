"""What a count of successes says about their true share: the exact bound of Clopper and Pearson (1934)."""

import math
from functools import lru_cache

from harness.stats.student import incomplete_beta

CONFIDENCE = 0.95
_STEPS = 60  # halvings of an interval of length 1


def share_above(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """One-sided lower confidence bound of the share of successes; 0 without any trial."""
    if successes == 0 or trials == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # P(at least so many successes), were `middle` the true share.
        if incomplete_beta(successes, trials - successes + 1, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=256)
def trials_needed(share: float, failures: int = 0, confidence: float = CONFIDENCE) -> int:
    """Fewest trials, all but `failures` of them successes, whose lower bound reaches `share`, below 1."""
    if not failures:
        return math.ceil(math.log(1 - confidence) / math.log(share))
    trials = trials_needed(share, failures - 1, confidence)
    while share_above(trials - failures, trials, confidence) < share:
        trials += 1
    return trials
