"""Counts and their true shares: the bound of Clopper and Pearson (1934), the exact test of Fisher (1935)."""

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


def more_often(count: int, trials: int, other: int, other_trials: int) -> float:
    """One-sided p of Fisher's exact test: `count` of `trials` or more, were both shares equal."""
    if trials == 0 or other_trials == 0:
        return 1.0
    both, all_trials = count + other, trials + other_trials

    def log_ways(hits: int) -> float:
        return _log_choose(trials, hits) + _log_choose(other_trials, both - hits)

    highest = min(both, trials)
    total = _log_choose(all_trials, both)
    return min(1.0, math.fsum(math.exp(log_ways(hits) - total) for hits in range(count, highest + 1)))


def _log_choose(total: int, chosen: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
