"""Whether the measured part of a cell is steady: a single test, and the shape of what differs.

Latency and output speed are each cut into equal batches. Every shape is tried that a course may have: a
stretch that differs from the rest, and a slope that ends or begins anywhere. The best shape's share of the
variance is the test. One odd batch has no shape, and noise that lasts longer than a batch widens the limit.
A stretch at either end that the rest of the cell has as well is a stall: it says nothing about that end.
No request leaves the statistics.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.metrics.view import CellView, Floats, RequestView, Rows
from harness.metrics.window import first_left_empty_ns, slots_by_worker
from harness.model import METRICS, SteadyState, known
from harness.model.numbers import percent_apart
from harness.records.layout import UNKNOWN, Outcome, Phase, Records, with_text
from harness.records.request_table import RequestTable
from harness.stats.steps import MEDIAN_STEP

Form = Literal["ramp", "drift", "step", "stall"]

MOST_BATCHES = 40
LEAST_BATCHES = 8  # fewer have no course
# By batches, the best shape's share of the variance that chance exceeds once in 2,000 courses: two courses
# make one false alarm in 1,000 cells. From `python -m tests.bench.steadiness --limits`.
LIMITS = {8: 0.982, 10: 0.955, 13: 0.89, 16: 0.813, 20: 0.728, 25: 0.636, 32: 0.552, 40: 0.465}
RAMP_SHARE = 0.1  # less is not a ramp
START_SHARE = 2 / MOST_BATCHES  # of the requests, sent while slots waited to begin; fewer have no shape
DRIFT_SHARE = 0.2  # from one end of the shape to the other; less is neither a drift nor a step
CALM = 0.01  # less spread than this counts as none
ODD = 5.0  # times the usual spread
OPEN_BATCH = 8  # answers of an open loop in a batch
LAGS = 10  # noise is followed over this part of the batches
SHORT = 0.25  # of the cell: a stretch that is no longer, and over before the end, is a stall
EARLY = 0.5  # of the cell: what warms up and is over by then is a ramp
FILLED = 0.25  # of the cell: what plainly grows slower is a ramp, of an engine that fills up, if over by then
ALIKE = 0.7  # of what a stretch takes or saves, from which on another one is alike


class Shape(NamedTuple):
    """Batches `start` to `stop` differ from the rest: by one level, or by a slope over them."""

    start: int
    stop: int
    sloped: bool

    def form(self, batches: int, *, slower: bool) -> Form:
        """`slower`: what comes after it, or the end of a slope, is plainly slower than it or its start."""
        if self.start == 0 and self.stop <= (FILLED if slower else EARLY) * batches:
            return "ramp"
        if self.sloped:
            return "drift"
        inside = self.start > 0 and self.stop < batches
        return "stall" if inside and self.stop - self.start <= SHORT * batches else "step"

    def inside(self, batches: int) -> NDArray[np.bool_]:
        index = np.arange(batches)
        return (index >= self.start) & (index < self.stop)


class Found(NamedTuple):
    form: Form
    shape: Shape
    change: float  # of a stretch against the rest; of a slope from its start to its end


@dataclass(frozen=True, slots=True)
class Course:
    """One figure over the measured part of a cell, in equal batches."""

    name: str  # its key in `steady_state`
    label: str
    starts_ns: NDArray[np.int64]  # when each batch began
    values: Floats  # as shares of the mean, or logarithms
    logarithmic: bool = True

    def find(self) -> Found | None:
        """The best shape, if it plainly differs from a steady course; None too for too few batches."""
        count = len(self.values)
        if count < LEAST_BATCHES:
            return None
        shapes, contrasts = shapes_of(count)
        scores = scores_of(self.values)
        fits = contrasts @ scores
        best = int(np.argmax(np.abs(fits)))
        if not exceeds_chance(scores, contrasts[best]):
            return None
        shape = shapes[best]
        change = self._change(shape, contrasts[best])
        slower = abs(change) > DRIFT_SHARE and (change > 0) == (shape.sloped == self.logarithmic)
        form = "stall" if self._comes_again(shape) else shape.form(count, slower=slower)
        return Found(form, shape, change) if abs(change) > _limit(form) else None

    def _change(self, shape: Shape, contrast: Floats) -> float:
        if shape.sloped:
            change = float(contrast @ self.values) * float(contrast[shape.stop - 1] - contrast[shape.start])
        else:
            inside = shape.inside(len(self.values))
            change = float(np.median(self.values[inside]) - np.median(self.values[~inside]))
        return float(np.expm1(change)) if self.logarithmic else change

    def _comes_again(self, shape: Shape) -> bool:
        """Whether as many batches in a row, all outside of the shape, differ alike from the others.

        A batch counts for two at most: what fills two may come again in one, and one odd batch is not what
        made a longer stretch.
        """
        length = shape.stop - shape.start
        if 2 * length > len(self.values):
            return False
        values = np.exp(self.values) if self.logarithmic else self.values
        inside = shape.inside(len(values))
        away = values - np.median(values[~inside])
        away *= np.copysign(1, away[inside].sum())
        here = float(away[inside].sum())
        away = np.where(inside, -np.inf, np.minimum(away, 2 * here / length))
        return bool(sliding_window_view(away, length).sum(axis=1).max() >= ALIKE * here)

    def says(self, found: Found) -> str:
        (start, stop, sloped), change, last = found.shape, found.change, len(self.values)
        if found.form == "step" and start <= 1 and stop < last:  # what comes after it is what changed
            change = -change / (1 + change) if self.logarithmic else -change
            start, stop = stop, last
        since = f"from second {_seconds(self.starts_ns[start])}"
        until = f" to {_seconds(self.starts_ns[stop])}" if stop < last else " on"
        ways = ("rises", "falls") if sloped else ("is higher", "is lower")
        size = f"{percent_apart(abs(change), _limit(found.form))}%"
        whole = "" if self.logarithmic else " of the mean"
        return f"{found.form}: {self.label} {ways[change < 0]} by {size}{whole} {since}{until}"


def _seconds(time_ns: int) -> str:
    """Tenths; below one second two digits, as far as milliseconds: a short cell is over within tenths."""
    return f"{time_ns / 1e9:.1f}" if time_ns >= 1e9 else f"{round(time_ns / 1e9, 3):.2g}"


def _limit(form: Form) -> float:
    return RAMP_SHARE if form == "ramp" else DRIFT_SHARE


def exceeds_chance(scores: Floats, contrast: Floats) -> bool:
    """`scores` and the best shape `contrast` have mean 0 and length 1.

    What is left beyond the shape tells how long noise lasts: the more alike batches in a row are, the fewer
    they count for.
    """
    fit = float(contrast @ scores)
    left = scores - fit * contrast
    rest = float(left @ left)
    if rest < 1e-12:  # exactly this shape, or no change at all
        return fit**2 > 0.5
    count = len(scores)
    lags = [float(left[lag:] @ left[:-lag]) / rest for lag in range(1, count // LAGS + 1)]
    lasting = 1 + 2 * sum(max(lag, 0.0) for lag in lags)
    limit = float(np.interp(count, list(LIMITS), list(LIMITS.values())))
    return fit**2 / rest / lasting > limit / (1 - limit)


@lru_cache(maxsize=MOST_BATCHES)
def shapes_of(count: int) -> tuple[tuple[Shape, ...], Floats]:
    """The shapes of so many batches, a row each, with mean 0 and length 1."""
    # Of two parts the shorter one is the stretch: the other differs from it by as much.
    stretches = [Shape(0, stop, False) for stop in range(2, int(EARLY * count) + 1)]
    stretches += [Shape(start, count, False) for start in range(int(EARLY * count) + 1, count - 1)]
    stretches += [Shape(a, b, False) for a in range(1, count - 2) for b in range(a + 2, count)]
    slopes = [Shape(0, b, True) for b in range(3, count + 1)]
    slopes += [Shape(a, count, True) for a in range(1, count - 2)]
    rows = [stretch.inside(count).astype(np.float64) for stretch in stretches]
    time = np.arange(count, dtype=np.float64)
    rows += [np.clip(time, slope.start, slope.stop - 1) for slope in slopes]
    table = np.array(rows)
    table -= table.mean(axis=1, keepdims=True)
    return (*stretches, *slopes), table / np.linalg.norm(table, axis=1, keepdims=True)


def scores_of(values: Floats) -> Floats:
    """The values without odd ones, scaled to mean 0 and length 1; all 0 if they are equal.

    A batch that is far from both batches next to it is odd: it gets the middle value of the three. Far is
    measured by how much batches usually differ from the next one, which ramps, drifts and steps leave alone.
    """
    usual = max(float(np.median(np.abs(np.diff(values)))) / MEDIAN_STEP, CALM)
    padded = np.concatenate([values[2:3], values, values[-3:-2]])
    before, after = padded[:-2], padded[2:]
    middle = np.maximum(np.minimum(before, after), np.minimum(np.maximum(before, after), values))
    scores = np.where(np.abs(values - middle) > ODD * usual, middle, values)
    scores -= scores.mean()
    length = float(np.linalg.norm(scores))
    return scores / length if length else scores


def steady_state(cell: CellView) -> SteadyState:
    """Describes the course only: every measured request stays in the figures.

    A cut of its own would leave a cell with other requests than those it is compared with. `ramp_requests`
    says how many measured requests were sent before the steady part, and so how many more of warm-up all
    cells would need. A measured request that was sent before the last slot of a closed loop had begun met a
    smaller load, however little it shows. Times are seconds from the cell's t0.
    """
    view, load, requested = cell.timed, cell.facts.load, cell.requested
    spread_over_ns, workload = cell.facts.client.spread_over_ns, cell.facts.workload
    requests = view.requests
    chosen = view.measured & (requests["sent_ns"] != UNKNOWN)
    # Warm-up has to stand in for all that was sent, also by users who hang up: in it nobody does.
    hang_up = (requests["phase"] == Phase.IMPATIENT) & (requests["outcome"] != Outcome.CANCELLED)
    counted = chosen | (hang_up & (requests["sent_ns"] != UNKNOWN))
    if not chosen.any():
        return SteadyState(state="unknown", why="no measured request was sent")
    if untested := _untested(int(counted.sum()), cell):
        return SteadyState(state="not tested", why=untested)
    begin, last_send = int(requests["sent_ns"][chosen].min()), int(requests["sent_ns"].max())
    most, turns = MOST_BATCHES, _turns(requested)
    if turns > 1:  # a batch has whole chats of all slots, or of an open loop the waiting of several answers
        most = min(most, int(chosen.sum() / turns / (load.slots or OPEN_BATCH)))
    until = last_send
    if load.slots is not None:
        until = _full_until_ns(requests, load.slots, last_send, cell.thinking_until_ns)
    judged = [_latency(view, load.slots, until, most)]
    if load.slots is not None:  # what an open loop puts out follows its arrivals, which come as chance has it
        judged.append(_tokens(view.records, (begin, until), most))
    courses = [course for course in judged if course]
    found = {course.name: course.find() for course in courses}
    cuts = {
        name: change.shape.stop if change is not None and change.form == "ramp" else 0
        for name, change in found.items()
    }
    # A course begins with its first answer, before which requests may have failed.
    start = max([begin, *(int(course.starts_ns[cut]) for course in courses if (cut := cuts[course.name]))])
    ramp = int(np.count_nonzero(counted & (requests["sent_ns"] < start)))
    early = int(np.count_nonzero(counted & (requests["sent_ns"] < spread_over_ns)))
    early = early if early >= START_SHARE * counted.sum() else 0
    state, why = _state(courses, found, early)
    if state == "ramp kept" and ramp > early:
        why = f"the first {ramp} of {counted.sum()} measured requests differ from the rest: {why}"
    return SteadyState(
        state=state,
        why=why,
        fixed_s=begin / 1e9,
        start_s=max(start, spread_over_ns if early else 0) / 1e9,
        end_s=last_send / 1e9,
        drained_s=float(requests["end_ns"].max()) / 1e9,
        cuts=cuts,
        removed=0,
        ramp_requests=max(ramp, early),
        cold_misses=bool(workload.cold_cache and workload.ideal_hit_rate),
        drift={
            name: change.change if change is not None and change.form in ("drift", "step") else None
            for name, change in found.items()
        },
        shapes={name: change.form if change is not None else None for name, change in found.items()},
    )


def _turns(requested: RequestTable | None) -> int:
    """Turns of a chat, on average: later ones have longer prompts, and all slots begin a chat together."""
    chats = int(np.count_nonzero(requested.numbers["turn"] <= 0)) if requested is not None else 0
    return round(len(requested) / chats) if requested is not None and chats else 1


def _untested(counted: int, cell: CellView) -> str:
    """A reason why the course of such a cell says nothing of the engine; "" if there is none."""
    load, profile = cell.facts.load, known(cell.facts.load.profile)
    if cell.facts.workload.in_stretches or load.kind == "trace" or profile:
        return "the load itself changes over time"
    if load.slots is not None and counted <= load.slots:
        return "all requests are sent at once"
    if load.slots == 1 and cell.facts.after_start:
        return "the first requests after a start are what is measured"
    return ""


def _state(courses: list[Course], found: dict[str, Found | None], early: int) -> tuple[str, str | None]:
    """The gravest first: a lasting change, then one at the beginning, then one that comes and goes."""
    says: dict[Form, list[str]] = {}
    for course in courses:
        if (deviation := found[course.name]) is not None:
            says.setdefault(deviation.form, []).append(course.says(deviation))
    lasting = [*says.get("drift", []), *says.get("step", [])]
    if lasting:
        return "not steady", "; ".join(lasting)
    were = "measured request was" if early == 1 else "measured requests were"
    start = [f"{early} {were} sent before the slots had begun one after another"] if early else []
    if ramps := [*start, *says.get("ramp", [])]:
        return "ramp kept", "; ".join(ramps)
    if not any(len(course.values) >= LEAST_BATCHES for course in courses):
        return "unknown", "too few requests to tell"
    return ("stall", "; ".join(says["stall"])) if "stall" in says else ("steady", None)


def batches_of(answers: int, *, open_loop: bool) -> int:
    """Fewer batches for an open loop: a wait lasts over several answers."""
    return max(min(MOST_BATCHES, answers // (OPEN_BATCH if open_loop else 1)), 1)


def _full_until_ns(requests: Rows, slots: int, last_send_ns: int, kept_ns: int) -> int:
    """The last send of a closed loop, or the end before it that leaves a slot empty: its load worker has none
    left to send, while others go on or the users of its other slots think.
    """
    sent = requests[requests["sent_ns"] != UNKNOWN]
    ends = np.maximum(sent["end_ns"], kept_ns)
    return min(last_send_ns, first_left_empty_ns(ends, sent["seq"], sent["worker"], slots))


def _latency(view: RequestView, slots: int | None, until_ns: int, most: int) -> Course | None:
    """Durations of whole answers, in the order of their sends, until `until_ns`.

    The last answer of each slot is left out where there are several slots: those that have nothing left to
    send leave the others a smaller load.
    """
    rows = view.answers[np.argsort(view.answers["sent_ns"], kind="stable")]
    if slots is not None and slots > 1:
        rows = rows[rows["sent_ns"] <= until_ns]
        kept = np.ones(len(rows), bool)
        for worker, own in slots_by_worker(view.requests["worker"], slots).items():
            kept[np.flatnonzero(rows["worker"] == worker)[-own:]] = False
        rows = rows[kept]
    if not len(rows):
        return None
    took = (rows["last_text_ns"] - rows["start_ns"]) / 1e6
    count = max(min(batches_of(len(rows), open_loop=slots is None), most), 1)
    batches = np.array_split(np.arange(len(rows)), count)
    return Course(
        "e2e_ms",
        METRICS["e2e_ms"].short,
        np.array([rows["sent_ns"][batch[0]] for batch in batches]),
        np.log([max(took[batch].mean(), 1e-3) for batch in batches]),
    )


def _tokens(records: Records, part_ns: tuple[int, int], most: int) -> Course | None:
    """Text events per second in equal stretches of time, at least ten events each on average.

    Stretches without any are usual where prompts are long: they have no logarithm.
    """
    events, (begin_ns, end_ns) = records.events, part_ns
    stamps = events["stamp_ns"]
    inside = stamps[with_text(events) & (stamps >= begin_ns) & (stamps < end_ns)]
    count = min(most, len(inside) // 10)
    if count < LEAST_BATCHES:
        return None
    edges = np.linspace(begin_ns, end_ns, count + 1).astype(np.int64)
    counts, _ = np.histogram(inside, edges)
    return Course(
        "output_events_per_s", "output in events/s", edges[:-1], counts / counts.mean(), logarithmic=False
    )
