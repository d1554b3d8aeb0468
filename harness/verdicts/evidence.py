"""Decides for which metrics a measured run is not evidence: the load or a drift made the figures."""

from collections.abc import Iterator

from harness.model import UNSET, CellResult, ComparisonVerdict, IssueCode, State, known
from harness.model.metric_table import root_of

ALL = "*"
RATES = "rates"
TIMES = "times"
UNDER_LOAD = "under load"

# Money and energy are spent over time, so their figures follow the rate.
_RATE_PREFIXES = ("cost_", "joules_")
_NO_RATE: dict[State | None, str] = {"under load": UNDER_LOAD, None: "state not known"}
# A ramp is as little evidence as a drift: its requests met a lower load, or an engine that was warming up.
# They are not cut off instead, because cells that are compared must have the same requests.
_UNSTEADY = {IssueCode.NOT_STEADY: "not steady", IssueCode.RAMP_KEPT: "ramp kept"}


def kind_of(metric: str) -> str | None:
    """RATES for what a server can do only if it set the pace, TIMES for what holds only if it kept up."""
    name = root_of(metric)
    if name.endswith(("_ms", "_factor", "_loss")) or name.startswith("goodput_"):
        return TIMES
    return RATES if name.endswith("_per_s") or name.startswith(_RATE_PREFIXES) else None


def doubts(cell: CellResult) -> Iterator[tuple[str, str]]:
    """Yields kinds of metrics (ALL, RATES, TIMES) that the cell is not evidence for, with a short reason."""
    if (course := unsteady(cell)) is not None:
        yield ALL, course[0]
    state = state_of(cell)
    if state == "unstable":
        yield TIMES, state
    if state in _NO_RATE:
        yield RATES, _NO_RATE[state]


def unsteady(cell: CellResult) -> tuple[str, str] | None:
    """`not steady` or `ramp kept`, and what changed over the measured part; None if nothing did."""
    reasons = (reason for reason in cell.validity.reasons if reason.code in _UNSTEADY)
    return next(((_UNSTEADY[reason.code], reason.measured) for reason in reasons), None)


def state_of(cell: CellResult) -> State | None:
    """The state of a cell; None if it is not known.

    Cells of earlier versions have none: their closed loops kept every slot in use, so they were saturated.
    """
    if cell.state is not UNSET:
        return cell.state
    closed = cell.load.kind == "concurrency" and not known(cell.load.think_time_s)
    return "saturated" if closed else None


def flattered(verdict: ComparisonVerdict, failed: tuple[int, int]) -> bool:
    """Whether the verdict about a against b favours a side with failed runs, or calls such sides the same.

    The runs that did not fail would flatter that side.
    """
    a, b = failed
    return bool({"faster": a, "slower": b, "same": a + b}.get(verdict))
