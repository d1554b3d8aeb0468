"""Whether a server keeps up with an open loop: how many requests are in the system, early and late.

A request is in the system from the time it was due until its answer ended, wherever it waits.
"""

import numpy as np

from harness.metrics.view import RequestView
from harness.model import Backlog, Load
from harness.records.layout import UNKNOWN, Outcome, Phase

MOST_SETTLING = 0.25  # of the window


def backlog(view: RequestView, load: Load) -> Backlog | None:
    """The `backlog` of a cell; None for a closed loop, and where fewer than two requests were due.

    The window is that of the measured requests' due times, less the time that the first answers take: an
    empty server fills up before it is steady. `in_system_first` and `in_system_last` are means over its
    first and its last third.
    """
    requests = view.requests
    chosen = view.measured & (requests["start_ns"] != UNKNOWN)
    if load.slots is not None or chosen.sum() < 2:
        return None
    due = requests["start_ns"][chosen]
    begin, end = int(due.min()), int(due.max())
    if end == begin:
        return None
    stays = (requests["outcome"] != Outcome.CANCELLED) & (requests["phase"] != Phase.IMPATIENT)
    rows = requests[stays & (requests["start_ns"] != UNKNOWN)]
    starts = rows["start_ns"]
    left = np.where(rows["end_ns"] == UNKNOWN, starts, rows["end_ns"])
    early = starts <= begin + MOST_SETTLING * (end - begin)
    settling = min(float((left - starts)[early].mean()), MOST_SETTLING * (end - begin))
    steady = begin + round(settling)

    def in_system(since: float, until: float) -> float:
        inside = np.clip(left, since, until) - np.clip(starts, since, until)
        return float(inside.sum() / (until - since))

    third = (end - steady) / 3
    answered = (rows["outcome"] == Outcome.OK) & (left > steady) & (left <= end)
    return Backlog(
        probed_s=(end - begin) / 1e9,
        window_s=(end - steady) / 1e9,
        arrivals=int(((starts > steady) & (starts <= end)).sum()),
        answered=int(answered.sum()),
        in_system_mean=in_system(steady, end),
        in_system_first=in_system(steady, steady + third),
        in_system_last=in_system(end - third, end),
    )
