"""Where the steady part of a cell begins: after declared warm-up, by MSER on latency and on output speed.

MSER (White 1997) cuts where the standard error of what is left is smallest. A ramp is told only where the
part before the cut plainly differs; the rest is then tested for a slope. No request leaves the statistics.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics import latency
from harness.model import METRICS, Load, SteadyState, known
from harness.records.layout import GENERATED, UNKNOWN, Records

Floats = NDArray[np.float64]

MOST_BATCHES = 40
LEAST_BATCHES = 20  # fewer have no course
NEARLY = 1.25  # the first cut about as good as the best one: chance decides between those
CALM = 0.01  # less spread than this is none
PLAIN_ERRORS = 4.0  # standard errors between what is cut and what stays
PLAIN_SHARE = 0.1  # and of what stays
DRIFT_SHARE = 0.2  # from the first to the last batch


@dataclass(frozen=True, slots=True)
class Course:
    """One figure over the measured part of a cell, in equal batches."""

    name: str  # its key in `steady_state`
    label: str
    starts_ns: NDArray[np.int64]  # when each batch began
    values: Floats  # as shares of the mean, or logarithms
    logarithmic: bool = True

    def cut(self) -> int:
        """Batches before the steady part; 0 where none plainly differs."""
        values = self.values
        if len(values) < LEAST_BATCHES:
            return 0
        cuts = range(len(values) // 2 + 1)
        scores = np.array([(values[cut:].var() + CALM**2) / (len(values) - cut) for cut in cuts])
        best = int(np.argmax(scores <= NEARLY * scores.min()))
        if best < 2:  # one odd batch is no ramp
            return 0
        rest = values[best:]
        away = abs(values[:best].mean() - rest.mean())
        error = rest.std(ddof=1) * (1 / best + 1 / len(rest)) ** 0.5
        return best if away > max(PLAIN_ERRORS * error, np.log1p(PLAIN_SHARE)) else 0

    def drift(self, cut: int) -> float | None:
        """Relative change over what is left after `cut`; None where it is small or may be chance."""
        values = self.values[cut:]
        if len(values) < LEAST_BATCHES:
            return None
        time = np.arange(len(values)) - (len(values) - 1) / 2
        slope = float((time * values).sum() / (time**2).sum())
        left = values - values.mean() - slope * time
        error = float((left**2).sum() / (len(values) - 2) / (time**2).sum()) ** 0.5
        change = slope * (len(values) - 1)
        change = float(np.expm1(change)) if self.logarithmic else change
        return change if abs(slope) > PLAIN_ERRORS * error and abs(change) > DRIFT_SHARE else None


def steady_state(
    records: Records, load: Load, *, in_stretches: bool = False, cold_misses: bool = False
) -> SteadyState:
    """The cell's `steady_state`: only what it looks like, since every measured request stays in the figures.

    A cut of its own would leave a cell with other requests than those it is compared with. `ramp_requests`
    says how many measured requests were sent before the steady part, and so how many more of warm-up all
    cells would need. `in_stretches`: other requests at one time than at another, as the workload means it.
    `cold_misses`: requests fill an empty cache for later ones, so a slow beginning is part of the scenario.
    Times are seconds from the cell's t0.
    """
    requests = records.requests
    chosen = latency.measured(requests) & (requests["sent_ns"] != UNKNOWN)
    if not chosen.any():
        return SteadyState(state="unknown", why="no measured request was sent")
    begin, last_send = int(requests["sent_ns"][chosen].min()), int(requests["sent_ns"].max())
    profile = known(load.profile)
    if in_stretches or load.kind == "trace" or profile:
        return SteadyState(state="not tested", why="the load itself changes over time")
    if load.slots is not None and chosen.sum() <= load.slots:
        return SteadyState(state="not tested", why="all requests are sent at once")
    courses = [course for course in (_latency(requests), _tokens(records, begin, last_send)) if course]
    cuts = {course.name: course.cut() for course in courses}
    start = max([begin, *(int(course.starts_ns[cuts[course.name]]) for course in courses)])
    ramp = int(np.count_nonzero(chosen & (requests["sent_ns"] < start)))
    drifts = {course.name: course.drift(cuts[course.name]) for course in courses}
    ramp_words = (
        f"the first {ramp} of {chosen.sum()} measured requests differ from the rest" if ramp else None
    )
    state, why = _state(courses, drifts, ramp_words)
    return SteadyState(
        state=state,
        why=why,
        fixed_s=begin / 1e9,
        start_s=start / 1e9,
        end_s=last_send / 1e9,
        drained_s=float(requests["end_ns"].max()) / 1e9,
        cuts=cuts,
        removed=0,
        ramp_requests=ramp,
        cold_misses=cold_misses,
        drift=drifts,
    )


def _state(
    courses: list[Course], drifts: dict[str, float | None], ramp: str | None
) -> tuple[str, str | None]:
    drifting = [
        f"{course.label} changes by {share:+.0%} over it"
        for course in courses
        if (share := drifts[course.name])
    ]
    if not any(len(course.values) >= LEAST_BATCHES for course in courses):
        return "unknown", "too few requests to tell"
    if drifting:
        return "not steady", "; ".join(drifting)
    return ("ramp kept" if ramp else "steady"), ramp


def _latency(requests: NDArray[np.void]) -> Course | None:
    """Of whole answers, in the order of their sending. A few very long ones are not to look like a ramp."""
    rows = requests[latency.answered(requests)]
    rows = rows[np.argsort(rows["sent_ns"], kind="stable")]
    if not len(rows):
        return None
    took = (rows["last_text_ns"] - rows["start_ns"]) / 1e6
    batches = np.array_split(np.arange(len(rows)), min(MOST_BATCHES, len(rows)))
    return Course(
        "e2e_ms",
        METRICS["e2e_ms"].short,
        np.array([rows["sent_ns"][batch[0]] for batch in batches]),
        np.log([max(took[batch].mean(), 1e-3) for batch in batches]),
    )


def _tokens(records: Records, begin_ns: int, end_ns: int) -> Course | None:
    """Text events per second in equal stretches of time, at least ten events each on average.

    Stretches without any are usual where prompts are long: they have no logarithm.
    """
    events = records.events
    stamps = events["stamp_ns"][np.isin(events["kind"], GENERATED)]
    inside = stamps[(stamps >= begin_ns) & (stamps < end_ns)]
    count = min(MOST_BATCHES, len(inside) // 10)
    if count < LEAST_BATCHES:
        return None
    edges = np.linspace(begin_ns, end_ns, count + 1).astype(np.int64)
    counts, _ = np.histogram(inside, edges)
    return Course(
        "output_events_per_s", "output in events/s", edges[:-1], counts / counts.mean(), logarithmic=False
    )
