"""Course of the cell: whether its measured part is steady from its first request on."""

from collections.abc import Iterator, Sequence
from functools import partial

from harness.errors import page_address
from harness.metrics.steady import DRIFT_SHARE, RAMP_SHARE, START_SHARE
from harness.model import UNSET, CellResult, IssueCode, LoadPoint, RunWarning
from harness.validity import notices
from harness.validity.rule import Evidence, Rule, Violation

_MORE_SESSIONS = "recorded sessions have no warm-up: with more of them the start weighs less"
_BEHIND = "more was sent than the server serves, so that answers take longer and longer: lower the rate"


@partial(
    Rule,
    code=IssueCode.NOT_STEADY,
    measures=f"a drift or a step of latency or output speed ({page_address('metrics', 'steadiness')})",
    limit=f"{100 * DRIFT_SHARE:g}% over the measured part",
    hint="ask for more requests; where an open loop only grows slower, the rate is more than is served",
    cause="work",
    eases=True,
)
def _not_steady(cell: Evidence) -> Iterator[Violation]:
    if cell.steady is not None and cell.steady.state == "not steady":
        yield Violation(str(cell.steady.why), hint=_BEHIND if cell.state == "unstable" else None)


@partial(
    Rule,
    code=IssueCode.RAMP_KEPT,
    measures="first measured requests that plainly differ, or were sent while slots waited to begin",
    limit=f"{100 * RAMP_SHARE:g}%, or {100 * START_SHARE:g}% of the requests sent in the start",
    hint="more warm-up requests, for all cells of this load alike",
    cause="work",
)
def _ramp_kept(cell: Evidence) -> Iterator[Violation]:
    steady = cell.steady
    if steady is not None and steady.state == "ramp kept" and not steady.cold_misses:
        sessions = cell.requested is not None and cell.requested.has_calls()
        more = f"{steady.ramp_requests} more warm-up requests, for all cells of this load alike"
        hint, needed = _MORE_SESSIONS if sessions else more, steady.ramp_requests or UNSET
        if cell.state == "unstable":  # a queue that grows has no steady part
            hint, needed = _BEHIND, UNSET
        yield Violation(str(steady.why), hint=hint, requests_needed=needed)


def ramp_warnings(cells: Sequence[CellResult]) -> Iterator[RunWarning]:
    """One per load point, with the warm-up that the slowest of its cells would need, if any keeps up."""
    ramps: dict[LoadPoint, list[CellResult]] = {}
    for cell in cells:
        if cell.steady_state.state == "ramp kept":
            ramps.setdefault(cell.point, []).append(cell)
    for ramp in ramps.values():
        worst = max(ramp, key=lambda c: (c.state != "unstable", c.steady_state.ramp_requests or 0))
        yield notices.RAMP_KEPT.warning(
            f"{worst.cell}: {worst.steady_state.why}; they are in the figures of every cell alike",
            _ramp_hint(worst),
        )


def _ramp_hint(cell: CellResult) -> str:
    if cell.steady_state.cold_misses:
        return "the first requests fill the empty cache, which is part of this scenario"
    if cell.state == "unstable":
        return _BEHIND
    if cell.sessions:
        return _MORE_SESSIONS
    enough = cell.requests.warmup + (cell.steady_state.ramp_requests or 0)
    return f"for the steady part alone: --set load.warmup_requests={enough}"


RULES = (_not_steady, _ramp_kept)
