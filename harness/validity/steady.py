"""Course of the cell: whether its measured part is steady from its first request on."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from harness.errors import page_address
from harness.metrics.steady import DRIFT_SHARE, RAMP_SHARE, START_SHARE
from harness.model import UNSET, CellResult, IssueCode, LoadPoint, RunWarning
from harness.model.change import WARMUP, advised
from harness.records.layout import Phase
from harness.validity import notices
from harness.validity.rule import Evidence, Rule, Violation

_MORE_SESSIONS = "recorded sessions have no warm-up: with more of them the start weighs less"
_TIMES = 2  # as many requests: most of what settles has settled in the first half
_SLOWER = "where an open loop only grows slower, the rate is more than is served; "
_MORE_WARM_UP = "more warm-up requests, for all cells of this load alike"
_BEHIND = "more was sent than the server serves, so that answers take longer and longer: lower the rate"


@partial(
    Rule,
    code=IssueCode.NOT_STEADY,
    measures=f"a drift or a step of latency or output speed ({page_address('metrics', 'steadiness')})",
    limit=f"{100 * DRIFT_SHARE:g}% over the measured part",
    hint=f"{_SLOWER}else measure longer: raise --requests",
    cause="work",
    eases=True,
)
def _not_steady(cell: Evidence) -> Iterator[Violation]:
    if cell.steady is None or cell.steady.state != "not steady":
        return
    if cell.state == "unstable":
        yield Violation(str(cell.steady.why), hint=_BEHIND)
    else:
        found = Violation(str(cell.steady.why), hint=_SLOWER if cell.load.slots is None else None)
        yield cell.longer(found, _TIMES * len(cell.view.measured_requests))


@partial(
    Rule,
    code=IssueCode.RAMP_KEPT,
    measures="first measured requests that plainly differ, or were sent while slots waited to begin",
    limit=f"{100 * RAMP_SHARE:g}%, or {100 * START_SHARE:g}% of the requests sent in the start",
    hint=_MORE_WARM_UP,
    cause="work",
)
def _ramp_kept(cell: Evidence) -> Iterator[Violation]:
    steady = cell.steady
    if steady is None or steady.state != "ramp kept" or steady.cold_misses:
        return
    found = Violation(str(steady.why), requests_needed=steady.ramp_requests or UNSET)
    if cell.state == "unstable":  # a queue that grows has no steady part
        yield Violation(found.measured, hint=_BEHIND)
    elif cell.requested is not None and cell.requested.has_calls():
        yield found._replace(hint=_MORE_SESSIONS)
    else:
        before = int(np.count_nonzero(cell.view.requests["phase"] == Phase.WARMUP))
        enough = before + (steady.ramp_requests or 0)
        yield found._replace(hint=_MORE_WARM_UP, change={WARMUP: enough})


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
    return advised("for the steady part alone", {WARMUP: enough})


RULES = (_not_steady, _ramp_kept)
