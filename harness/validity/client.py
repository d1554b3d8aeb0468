"""Load generator: the figures of a saturated client are not the server's."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from harness.metrics.distribution import highest_percentile
from harness.metrics.latency import at_once
from harness.model import Doubt, IssueCode, Quantiles, known
from harness.model.change import WORKERS
from harness.model.numbers import apart, counted, percent_apart
from harness.records.layout import Outcome
from harness.validity.requests import error_shown
from harness.validity.rule import Evidence, Rule, Violation

BUSY_SUSPECT, BUSY_INVALID = 0.7, 0.9  # of a core
MAX_LOOP_LAG_MS = 5.0
MAX_STAMP_UNCERTAINTY_MS = 0.1
# Events that share a read have one stamp, and the gap between them is lost.
MERGED_SUSPECT, MERGED_INVALID = 0.01, 0.1
CUT_SHORT = (  # what follows where a part of the load was not sent to its end
    IssueCode.RATE_MISSED,
    IssueCode.ARRIVALS_DIFFER,
    IssueCode.TOO_FEW_SAMPLES,
    IssueCode.TOO_SHORT,
    IssueCode.FEW_WAVES,
    IssueCode.NOT_STEADY,
    IssueCode.SLOT_IDLE,
)
LATE_PART = 0.25  # of these, in late looks: no majority, since a look that waited is not always known as late
_MORE_WORKERS = "this machine has free cores, so let more processes send"
_MERGED = f"{MERGED_SUSPECT:.0%} suspect, {MERGED_INVALID:.0%} invalid"


def tail(lag_ms: Quantiles) -> tuple[str, float | None]:
    """The percentile that the sample supports."""
    name = f"p{highest_percentile(lag_ms.samples)}"
    value: float | None = getattr(lag_ms, name)
    return name, value


@partial(
    Rule,
    code=IssueCode.WORKER_LOST,
    measures="load processes that died",
    limit="0",
    verdicts=("INVALID",),
    hint="their requests are lost, and their error says how the process ended; SIGKILL is mostly the "
    "kernel's, for lack of memory (`dmesg`)",
    cause="client",
    explains=CUT_SHORT,
)
def _worker_lost(cell: Evidence) -> Iterator[Violation]:
    if lost := cell.client.lost_workers:
        yield Violation(f"{counted(lost, 'worker')} died")


@partial(
    Rule,
    code=IssueCode.NO_SOCKETS,
    measures="requests for which the load generator could open no socket; "
    "they do not count as failed requests",
    limit="0",
    verdicts=("INVALID",),
    hint="raise the limit of open files (`ulimit -Hn`) or of ports, or use more --workers or less load",
    cause="client",
    eases=True,
)
def _no_sockets(cell: Evidence) -> Iterator[Violation]:
    """Names what the system said of the first: files and ports have limits of their own."""
    measured, errors = cell.view.measured, cell.records.errors
    unsent = np.flatnonzero(measured & (cell.view.requests["outcome"] == Outcome.NO_SOCKET)).tolist()
    if unsent:
        text = error_shown(errors[unsent[0]]) if errors else ""
        yield Violation(f"{len(unsent)} of {np.count_nonzero(measured)}{text and f': {text}'}")


@partial(
    Rule,
    code=IssueCode.CLIENT_BUSY,
    measures="CPU time of the busiest load process",
    limit=f"{BUSY_SUSPECT:.0%} suspect, {BUSY_INVALID:.0%} invalid",
    verdicts=("SUSPECT", "INVALID"),
    hint="use more --workers, a lower load, or a client machine of its own",
    cause="client",
)
def _busy(cell: Evidence) -> Iterator[Violation]:
    busy = cell.client.busy_share
    if busy is not None and busy > BUSY_SUSPECT:
        found = Violation(
            f"{percent_apart(busy, BUSY_SUSPECT, BUSY_INVALID)}% of a core",
            verdict="INVALID" if busy > BUSY_INVALID else "SUSPECT",
        )
        host, workers = cell.watched.host if cell.watched else None, cell.client.workers
        if host and host.cpus and host.cpus - host.busy_cores >= workers and not known(cell.facts.nodes):
            found = found._replace(hint=_MORE_WORKERS, change={WORKERS: 2 * workers})
        yield found


@partial(
    Rule,
    code=IssueCode.LOOP_LAG,
    measures="how late the load loop woke up (p99, or the highest percentile from p50 on that the sample "
    "supports)",
    limit=f"{MAX_LOOP_LAG_MS:g} ms",
    hint="the load generator was starved of CPU: leave it a core of its own",
    cause="client",
)
def _loop_lag(cell: Evidence) -> Iterator[Violation]:
    percentile, lag_ms = tail(cell.client.loop_lag_ms)
    if lag_ms is not None and lag_ms > MAX_LOOP_LAG_MS:
        yield Violation(f"{percentile} {apart(lag_ms, MAX_LOOP_LAG_MS, 1)[0]} ms")


@partial(
    Rule,
    code=IssueCode.STAMP_UNCERTAINTY,
    measures="how far arrival stamps may be off",
    limit=f"{MAX_STAMP_UNCERTAINTY_MS:g} ms",
    hint="the clock was slewed, or takes long to read: see `chronyc tracking`, and whether "
    "/sys/devices/system/clocksource/clocksource0/current_clocksource is tsc",
    cause="client",
)
def _stamp_uncertainty(cell: Evidence) -> Iterator[Violation]:
    uncertainty_ms = cell.client.stamp_uncertainty_ms
    if uncertainty_ms is not None and uncertainty_ms > MAX_STAMP_UNCERTAINTY_MS:
        yield Violation(f"{apart(uncertainty_ms, MAX_STAMP_UNCERTAINTY_MS, 3)[0]} ms")


@partial(
    Rule,
    code=IssueCode.CLOCK_STEP,
    measures="by how much the system clock was set during the cell, beyond what NTP slews",
    limit=f"{MAX_STAMP_UNCERTAINTY_MS:g} ms",
    verdicts=("INVALID",),
    hint="the system clock was set during the window: let NTP finish before measuring",
    cause="machine",
    explains=(IssueCode.STAMP_UNCERTAINTY,),
)
def _clock_step(cell: Evidence) -> Iterator[Violation]:
    step_ms = known(cell.client.clock_step_ms)
    if step_ms is not None and step_ms > MAX_STAMP_UNCERTAINTY_MS:
        nodes = [
            node.place
            for node in known(cell.facts.nodes) or ()
            if (known(node.clock_step_ms) or 0.0) > MAX_STAMP_UNCERTAINTY_MS
        ]
        where = f", on {', '.join(nodes)}" if nodes else ""
        yield Violation(f"{apart(step_ms, MAX_STAMP_UNCERTAINTY_MS, 3)[0]} ms{where}")


@partial(
    Rule,
    code=IssueCode.MERGED_EVENTS,
    measures="text events that shared a read, and so a stamp, with the one before, where in a quarter the "
    "client looked late: by the kernel's stamps later than half a gap of the answer; without them, later "
    "than half the median gap, its tick included (without a known gap: than a loop may lag, p50)",
    limit=_MERGED,
    verdicts=("SUSPECT", "INVALID"),
    hint="gaps between tokens are lost: leave the load generator a core of its own",
    cause="client",
)
def merged_events(cell: Evidence) -> Iterator[Violation]:
    """Doubts gaps only if the client looked later than half a usual one: servers write bursts too.

    The kernel stamps say so of each read. Without them the lag of the whole cell decides, and if the answers
    came at once, no gap is known: then the client is the cause only if it was starved, its median look later
    than a loop may be.
    """
    if (late_share := known(cell.client.late_share)) is not None:
        if late_share > MERGED_SUSPECT and (late_part(cell) or 0.0) > LATE_PART:
            read = percent_apart(late_share, MERGED_SUSPECT, MERGED_INVALID)
            verdict: Doubt = "INVALID" if late_share > MERGED_INVALID else "SUSPECT"
            yield Violation(f"{read}% of the events read together by a late look", verdict=verdict)
        return
    share, gap_ms = cell.client.merged_share or 0.0, _usual_gap_ms(cell)
    lag_ms = cell.client.loop_lag_ms
    percentile, late_ms = tail(lag_ms) if gap_ms else ("p50", lag_ms.p50)
    if share <= MERGED_SUSPECT or late_ms is None:
        return
    limit_ms = MAX_LOOP_LAG_MS
    if gap_ms:
        late_ms += cell.client.tick_ms or 0.0
        limit_ms = gap_ms / 2
    if late_ms > limit_ms:
        read = percent_apart(share, MERGED_SUSPECT, MERGED_INVALID)
        late, limit = apart(late_ms, limit_ms, 1)
        yield Violation(
            f"{read}% of the events read together, up to {late} ms late ({percentile})",
            f"{_MERGED}, if more than {limit} ms late",
            verdict="INVALID" if share > MERGED_INVALID else "SUSPECT",
        )


def late_part(cell: Evidence) -> float | None:
    """The part of the events that shared a read which late looks explain; None: not known."""
    late_share = known(cell.client.late_share)
    return None if late_share is None else late_share / (cell.client.merged_share or 1.0)


def rarely_late(cell: Evidence) -> tuple[float, float] | None:
    """The latest look in ms where it was later than half a usual gap, and the most time that such looks
    took, as a share: `merged_events` does not see them where they are fewer than its percentile shows.
    """
    lag_ms, wall_s, gap_ms = cell.client.loop_lag_ms, cell.client.wall_s, _usual_gap_ms(cell)
    if not wall_s or not gap_ms or lag_ms.max is None or lag_ms.max <= gap_ms / 2:
        return None
    looks = lag_ms.samples * (1 - highest_percentile(lag_ms.samples) / 100)
    return lag_ms.max, looks * lag_ms.max / (1e3 * wall_s)


def _usual_gap_ms(cell: Evidence) -> float | None:
    """The median over answers of the mean gap between their text events, which merged events leave as it is.

    None without one, and where events come closer than stamps may be uncertain: no look is in time for these.
    """
    rows = cell.view.answers
    rows = rows[(rows["text_events"] >= 2) & ~at_once(rows)]
    gaps = (rows["last_text_ns"] - rows["first_text_ns"]) / 1e6 / (rows["text_events"] - 1)
    median = float(np.median(gaps)) if len(gaps) else 0.0
    return median if median > MAX_STAMP_UNCERTAINTY_MS else None


@partial(
    Rule,
    code=IssueCode.LEDGER_MISMATCH,
    measures="`bench doctor`: requests and events, as client and scripted server report them",
    limit="the same",
    verdicts=("INVALID",),
    hint="see the other reasons; with none, this is a defect of the client: please report it",
    cause="client",
)
def _ledger_mismatch(cell: Evidence) -> Iterator[Violation]:
    if cell.ledger_agrees is False:
        yield Violation("client and server report different requests or events")


RULES = (
    _worker_lost,
    _no_sockets,
    _busy,
    _loop_lag,
    _stamp_uncertainty,
    _clock_step,
    merged_events,
    _ledger_mismatch,
)
