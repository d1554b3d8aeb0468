"""Whether the slots of a closed loop send together, by the Kuramoto order parameter of their send phases.

A wave is as many sends as there are slots; its period runs from its first send to the first of the next
wave, and a send's phase is its place in that period. |r| of N phases is 1 where all slots send at once and 0
where they are evenly apart (Kuramoto 1984; Strogatz 2000, Physica D 143). N random phases have a mean r² of
1/N, so the index takes that out: index² = (N · mean r² - 1) / (N - 1), 0 on average for chance (the pairwise
phase consistency of Vinck et al. 2010) and 1 in lockstep.

Two groups of slots half a period apart cancel in r. They show in the second harmonic, where the phases are
doubled; evenly spread slots do not, from four slots on.

Continuous batching joins a pair by itself: answers that end in one step are followed by requests that are
admitted together, and while their answers are equally long the two stay in one batch. One such pair among N
slots is one of N (N - 1) / 2 pairs at phase difference 0, so index² is 2 / (N (N - 1)) without any burst: 1
of two slots, which therefore are never in bursts, and below `MAX_INDEX`² from four slots on.
"""

import math

import numpy as np
from numpy.typing import NDArray

from harness.metrics.reason import OfTimes
from harness.metrics.view import Floats, RequestView
from harness.model import Load, Synchrony
from harness.model.numbers import counted
from harness.records.layout import UNKNOWN

# Above it the phases stand within a fifth of a period (standard deviation): bursts, not a steady stream.
MAX_INDEX = 0.5
# Standard deviations of chance. With few waves the limit rises by it.
CHANCE_ERRORS = 4.0
MIN_WAVES = 2
MIN_FOR_GROUPS = 4  # slots: of fewer, two groups are not bursts


def synchrony(view: RequestView, load: Load) -> tuple[Synchrony | None, str]:
    """The synchrony of the measured part of a closed loop, or None with the reason."""
    slots = load.slots
    if slots is None:
        return None, "an open loop has no slots"
    if slots < 2:
        return None, "one slot cannot be in lockstep"
    sent = np.sort(view.measured_requests["sent_ns"][view.measured_requests["sent_ns"] != UNKNOWN])
    waves = (len(sent) - 1) // slots
    if waves < MIN_WAVES:
        few = f"{counted(len(sent), 'request')}; {MIN_WAVES * slots + 1} are needed for {MIN_WAVES} waves"
        return None, few if len(sent) else OfTimes(few)
    chance = _chance(slots, waves)
    if chance >= 1:
        return None, f"{waves} waves of {slots} are too few to tell lockstep from chance"
    limit = max(MAX_INDEX, chance, _one_pair(slots))
    phases = _phases(sent, slots, waves)
    of_groups = {groups: _index(phases * groups) for groups in ((1, 2) if slots >= MIN_FOR_GROUPS else (1,))}
    groups = 2 if of_groups[1] <= limit < of_groups.get(2, 0.0) else 1
    index = of_groups[groups]
    result = Synchrony(
        index=index,
        limit=limit,
        waves=waves,
        groups=groups,
        in_bursts=index > limit,
        burst=slots / groups,
    )
    return result, ""


def _phases(sent_ns: NDArray[np.int64], slots: int, waves: int) -> Floats:
    """Phases in radians, a row per wave; 0 for a wave that has no duration."""
    stamps = sent_ns[: waves * slots].reshape(waves, slots)
    starts = sent_ns[: waves * slots + 1 : slots]
    periods = np.maximum(np.diff(starts), 1)
    phases: Floats = 2 * np.pi * (stamps - starts[:-1, None]) / periods[:, None]
    return phases


def _index(phases: Floats) -> float:
    slots = phases.shape[1]
    squared = float((np.abs(np.exp(1j * phases).mean(axis=1)) ** 2).mean())
    return math.sqrt(max((slots * squared - 1) / (slots - 1), 0.0))


def _chance(slots: int, waves: int) -> float:
    """The standard deviation of index² for random phases: 1 / √(N (N - 1) waves)."""
    return math.sqrt(CHANCE_ERRORS / math.sqrt(slots * (slots - 1) * waves))


def _one_pair(slots: int) -> float:
    """The index of one pair in step and all others at random."""
    return math.sqrt(2 / (slots * (slots - 1)))
