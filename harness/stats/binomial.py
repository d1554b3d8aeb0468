"""Counts and their true shares: the bound of Clopper and Pearson (1934), the exact test of Fisher (1935)."""

import math
from functools import lru_cache

import numpy as np

from harness.stats.student import incomplete_beta

CONFIDENCE = 0.95
_STEPS = 60  # halvings of an interval of length 1
_MOST_EXACT = 10_000  # trials up to which Fisher's test adds whole numbers, not rounded probabilities


@lru_cache(maxsize=4096)
def share_above(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """One-sided lower confidence bound of the share of successes; 0 without any trial."""
    if successes == 0 or trials == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # P(at least `successes`) if `middle` were the true share.
        if incomplete_beta(successes, trials - successes + 1, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=256)
def trials_needed(share: float, failures: int = 0, confidence: float = CONFIDENCE) -> int:
    """Fewest trials of which `failures` fail and whose lower bound still reaches `share`, below 1."""
    if not failures:
        return math.ceil(math.log(1 - confidence) / math.log(share))
    trials = trials_needed(share, failures - 1, confidence)
    while share_above(trials - failures, trials, confidence) < share:
        trials += 1
    return trials


def upper_rank(share: float, samples: int) -> int | None:
    """Rank from 1 of the value that bounds the quantile from above at 95%; None with too few samples.

    It is the smallest order statistic that exceeds the quantile with that probability: the number of samples
    below the quantile is binomial, whatever the distribution (David and Nagaraja 2003, 7.1).
    """
    if samples < trials_needed(share):
        return None
    around = 12 * math.sqrt(samples * share * (1 - share)) + 12  # counts further away have no probability
    lowest, highest = max(0, int(samples * share - around)), min(samples, int(samples * share + around))
    counts = np.arange(lowest, highest + 1)
    ratios = (samples - counts[:-1]) / counts[1:] * (share / (1 - share))
    first = _log_choose(samples, lowest) + lowest * math.log(share) + (samples - lowest) * math.log1p(-share)
    logs = first + np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    return lowest + int(np.searchsorted(np.cumsum(np.exp(logs)), CONFIDENCE)) + 1


def more_often(count: int, trials: int, other: int, other_trials: int) -> float:
    """One-sided p of Fisher's exact test: chance of `count` of `trials` or more if both shares are equal."""
    if trials == 0 or other_trials == 0:
        return 1.0
    both, all_trials = count + other, trials + other_trials
    hits = range(count, min(both, trials) + 1)
    if all_trials <= _MOST_EXACT:
        ways = sum(math.comb(trials, hit) * math.comb(other_trials, both - hit) for hit in hits)
        return ways / math.comb(all_trials, both)

    def log_ways(hit: int) -> float:
        return _log_choose(trials, hit) + _log_choose(other_trials, both - hit)

    total = _log_choose(all_trials, both)
    return min(1.0, math.fsum(math.exp(log_ways(hit) - total) for hit in hits))


def _log_choose(total: int, chosen: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
