"""Why two backends cannot be compared in a metric, whatever the figures: before any test is made."""

from collections.abc import Iterator, Mapping

from harness.compare.observed import Series
from harness.compare.rules import Rules
from harness.fairness import unequal
from harness.model import UNSET, CellResult, IssueCode, State, known

ALL = "*"
RATES = "rates"
TIMES = "times"

# Money and energy are of a time, so they follow the rate.
_RATE_PREFIXES = ("cost_", "joules_")


def kind_of(metric: str) -> str | None:
    """RATES: says what a server can do only where the server set the pace. TIMES: only where it kept up."""
    name = metric.partition(".")[0]
    if name.endswith("_ms") or name.startswith("goodput_"):
        return TIMES
    return RATES if name.endswith("_per_s") or name.startswith(_RATE_PREFIXES) else None


def refusals(a: Series, b: Series, rules: Rules, refused: str | None) -> dict[str, str]:
    """Why, by metric, by RATES or TIMES, or ALL. `refused`: what is known to forbid the whole comparison.

    `rules.forced` overlooks unequal conditions. What the load did to the figures cannot be overlooked.
    """
    found = dict(_states(a, b))
    return found if rules.forced else {**dict(_conditions(a, b, rules, refused)), **found}


def refusal(found: Mapping[str, str], metric: str) -> str | None:
    """The one that is most about this metric."""
    keys = (metric, metric.partition(".")[0], kind_of(metric), ALL)
    return next((found[key] for key in keys if key is not None and key in found), None)


def _conditions(a: Series, b: Series, rules: Rules, refused: str | None) -> Iterator[tuple[str, str]]:
    if reason := refused or _one_after_the_other(a, b, rules):
        yield ALL, reason
    for one in unequal([*a.cells, *b.cells]):
        if one.matters:
            yield from ((metric, one.text) for metric in one.metrics or (ALL,))


def _one_after_the_other(a: Series, b: Series, rules: Rules) -> str | None:
    """A machine that warms up or slows down would be taken for a difference between the backends."""
    if rules.apart or min(len(a.begun), len(b.begun)) < rules.min_runs:
        return None
    if max(a.begun) < min(b.begun) or max(b.begun) < min(a.begun):
        first, second = (a, b) if max(a.begun) < min(b.begun) else (b, a)
        return f"all runs of {first.label} came before all runs of {second.label}: drift is not ruled out"
    return None


def _states(a: Series, b: Series) -> Iterator[tuple[str, str]]:
    cells = [(one.label, cell) for one in (a, b) for cell in one.cells]
    drifting = ((label, why) for label, cell in cells for why in _drift(cell))
    if first := next(drifting, None):
        yield ALL, f"not steady: {first[0]}: {first[1]}"
    falling = ((label, cell) for label, cell in cells if state_of(cell) == "unstable")
    if unstable := next(falling, None):
        label, cell = unstable
        yield TIMES, f"{label} did not keep up with the load: {cell.state_why or 'unstable'}"
    if reason := _pace(a, b):
        yield RATES, reason


def _drift(cell: CellResult) -> Iterator[str]:
    return (reason.measured for reason in cell.validity.reasons if reason.code == IssueCode.NOT_STEADY)


def state_of(cell: CellResult) -> State | None:
    """As the cell says. Cells of earlier versions do not: their closed loops kept every slot in use."""
    if cell.state is not UNSET:
        return cell.state
    closed = cell.load.kind == "concurrency" and not known(cell.load.think_time_s)
    return "saturated" if closed else None


def _pace(a: Series, b: Series) -> str | None:
    """Why a rate of these is not what the servers can do."""
    states = {one.label: {state_of(cell) for cell in one.cells} for one in (a, b)}
    idle = [label for label, of_label in states.items() if "under load" in of_label]
    if len(idle) == len(states):
        return "both served all that was sent: the load set the rate"
    if idle:
        return f"{idle[0]} served all that was sent: what more it can do is not known"
    if any(None in of_label for of_label in states.values()):
        return "it is not known whether the load or the server set the rate"
    kinds = {one.label: {cell.window_kind for cell in one.cells} - {None} for one in (a, b)}
    if all(kinds.values()) and len(set.union(*kinds.values())) > 1:
        return "measured over unlike windows: only the steady part, and all of it with ramp and drain"
    return None
