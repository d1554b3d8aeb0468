"""Standstill: time in which the load generator or the machine did not run."""

from collections.abc import Iterable, Iterator
from functools import partial

from harness.metrics.standstill import HIT_SHARE, standstill
from harness.model import CellResult, Doubt, IssueCode, RunWarning, Standstill, known
from harness.model.numbers import apart, counted, percent_apart
from harness.validity.notices import ENGINE_STALLED
from harness.validity.rule import Evidence, Rule, Violation

# A rate is low by the share that was lost. Within 5% two engines count as the same: less than half of that.
LOST_INVALID = 0.02
# Then p99 is one of the answers that a stall made longer. Medians and rates still hold.
HIT_SUSPECT = 0.01
LATE = (  # what a process that stands still does late
    IssueCode.LOOP_LAG,
    IssueCode.SCHEDULE_LAG,
    IssueCode.RATE_MISSED,
    IssueCode.ARRIVALS_DIFFER,
    IssueCode.MERGED_EVENTS,
    IssueCode.SLOT_IDLE,
)
MAX_SUSPENDED_MS = 1.0  # the two clocks are read microseconds apart
_LIMIT = (
    f"{HIT_SUSPECT:.0%} of the answers longer by more than {HIT_SHARE:.0%} suspect, "
    f"{LOST_INVALID:.0%} of the measured time invalid"
)


@partial(
    Rule,
    code=IssueCode.MACHINE_STALLED,
    measures="stalls of 100 ms and more of the load process that lost most by them, where the sampler "
    "stood still as well and nothing came from the server meanwhile",
    limit=_LIMIT,
    verdicts=("SUSPECT", "INVALID"),
    hint="the machine, its VM or its job was stopped or moved: measure where nobody pauses it",
    cause="machine",
    certain=True,
    explains=LATE,
)
def _machine(cell: Evidence) -> Iterator[Violation]:
    found = standstill(cell.view, cell.facts)
    if found is not None and found.who == "machine":
        yield from _judged(found, "load generator and sampler stood still, and nothing came from the server")


@partial(
    Rule,
    code=IssueCode.CLIENT_STALLED,
    measures="stalls of 100 ms and more of the load process that lost most by them, where the sampler or "
    "the server went on, or nobody knows",
    limit=_LIMIT,
    verdicts=("SUSPECT", "INVALID"),
    hint="the load generator was stopped or got no CPU: leave it a core of its own",
    cause="client",
    explains=LATE,
)
def _client(cell: Evidence) -> Iterator[Violation]:
    found = standstill(cell.view, cell.facts)
    if found is None or found.who != "client":
        return
    if found.sampler_ms is None:
        others = "what else stood still is not known"
    elif 2 * found.sampler_ms < found.lost_ms:
        others = "the sampler went on"
    else:
        others = f"the sampler too, but {found.arrived_meanwhile} events of the server arrived meanwhile"
    yield from _judged(found, f"a load process stood still; {others}")


def _judged(found: Standstill, what: str) -> Iterator[Violation]:
    verdict: Doubt
    if found.share > LOST_INVALID:
        verdict = "INVALID"
    elif found.hit_share > HIT_SUSPECT:
        verdict = "SUSPECT"
    else:
        return
    at = f" at {found.at_s:.1f} s" if found.at_s is not None else ""
    share = percent_apart(found.share, LOST_INVALID, decimals=1)
    hit = percent_apart(found.hit_share, HIT_SUSPECT)
    yield Violation(
        f"{found.lost_ms / 1e3:.2f} s ({share}%) lost, {found.longest_ms / 1e3:.2f} s of it{at}, "
        f"in {hit}% of the answers: {what}",
        verdict=verdict,
    )


@partial(
    Rule,
    code=IssueCode.SUSPENDED,
    measures="time for which the machine was suspended: CLOCK_BOOTTIME went on, CLOCK_MONOTONIC did not",
    limit=f"{MAX_SUSPENDED_MS:g} ms",
    verdicts=("INVALID",),
    hint="keep the machine awake while it measures: no clock of the figures counts that time",
    cause="machine",
    certain=True,
    # The real-time clock counts that time.
    explains=(IssueCode.STAMP_UNCERTAINTY, IssueCode.CLOCK_STEP),
)
def _suspended(cell: Evidence) -> Iterator[Violation]:
    lost_ms = known(cell.client.suspended_ms)
    if lost_ms is not None and lost_ms > MAX_SUSPENDED_MS:
        yield Violation(f"{apart(lost_ms / 1e3, MAX_SUSPENDED_MS / 1e3, 3)[0]} s")


def engine_stalls(cells: Iterable[CellResult]) -> Iterator[RunWarning]:
    """Warns only: an engine's stall is part of its figures, and no doubt."""
    for cell in cells:
        if stall := known(cell.engine_stall):
            several = known(stall.silences)
            again = (
                f"; {several} such pauses took {(known(stall.silent_ms) or 0) / 1e3:.1f} s" if several else ""
            )
            yield ENGINE_STALLED.warning(
                f"{cell.cell}: the engine sent nothing for {stall.lasted_ms / 1e3:.1f} s, from "
                f"{stall.at_s:.1f} s on, with {counted(stall.in_flight, 'request')} in flight{again}; "
                "the load went on"
            )


RULES = (_suspended, _machine, _client)
