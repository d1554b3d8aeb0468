"""Finds reasons why two backends cannot be compared in a metric, before any test is made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.conditions import unequal
from harness.model import CellResult, Unequal
from harness.model.metric_table import root_of
from harness.validity.engine_changed import other_builds
from harness.verdicts.evidence import ALL, RATES, TIMES, UNDER_LOAD, kind_of, state_of, unsteady
from harness.verdicts.rules import Rules
from harness.verdicts.run_values import Series

_OF_TOKENS = ("characters-per-token", "usage-implausible")


class Obstacles(NamedTuple):
    """What stands between two backends. `refusals` are reasons by metric, by RATES or TIMES, or by ALL.

    `apart` is by metric the share by which unequal work may move a ratio without refusing it. `other_tokens`:
    a token of one is not a token of the other. `idle` is the one backend that served all that was sent, or
    "": its rates are the least that it can do.
    """

    refusals: Mapping[str, str]
    apart: Mapping[str, float]
    other_tokens: bool = False
    idle: str = ""


def obstacles(a: Series, b: Series, rules: Rules, refused: str | None) -> Obstacles:
    """Collects the obstacles. `refused` is a known reason against the whole comparison.

    `rules.forced` ignores unequal conditions, but not what the load did to the figures.
    """
    reasons = dict(_states(a, b))
    idle, of_rates = _pace(a, b)
    if of_rates:
        reasons[RATES] = of_rates
    if rules.forced:
        return Obstacles(reasons, {}, idle=idle)
    differences = unequal([*a.cells, *b.cells])
    apart: dict[str, float] = {}
    for difference in differences:
        for metric in () if difference.matters else difference.metrics:
            apart[metric] = max(apart.get(metric, 0.0), difference.apart)
    conditions = dict(_conditions(a, b, rules, refused, differences))
    other = any(change.matters and change.code in _OF_TOKENS for change in differences)
    return Obstacles({**conditions, **reasons}, apart, other, idle)


def refusal(reasons: Mapping[str, str], metric: str) -> str | None:
    """The most specific refusal for this metric; None if there is none."""
    keys = (metric, root_of(metric), kind_of(metric), ALL)
    return next((reasons[key] for key in keys if key is not None and key in reasons), None)


def _conditions(
    a: Series, b: Series, rules: Rules, refused: str | None, differences: Sequence[Unequal]
) -> Iterator[tuple[str, str]]:
    if reason := _one_after_the_other(a, b, rules):
        yield ALL, reason
    for difference in differences:
        if difference.matters:
            yield from ((metric, difference.text) for metric in difference.metrics or (ALL,))
    for changed in filter(None, (other_builds(side.label, side.cells) for side in (a, b))):
        yield ALL, changed
    if refused:  # the last one of a key stays, and this one says what differs in words
        yield ALL, refused


def _one_after_the_other(a: Series, b: Series, rules: Rules) -> str | None:
    """A reason if one backend ran first throughout: drift of the machine would look like a difference."""
    if rules.separate_sessions or min(len(a.begun), len(b.begun)) < rules.min_runs:
        return None
    if max(a.begun) < min(b.begun) or max(b.begun) < min(a.begun):
        first, second = (a, b) if max(a.begun) < min(b.begun) else (b, a)
        return f"all runs of {first.label} came before all runs of {second.label}: drift is not ruled out"
    return None


def _states(a: Series, b: Series) -> Iterator[tuple[str, str]]:
    """Yields refusals for runs that drift or fall behind, if a side has too many of them to leave out."""
    cells = {kind: list(_doubtful(kind, a, b)) for kind in (ALL, TIMES)}
    courses = ((label, course) for label, cell in cells[ALL] if (course := unsteady(cell)) is not None)
    if first := next(courses, None):
        label, (name, what) = first
        yield ALL, f"{name}: {label}: {what}"
    falling = ((label, cell) for label, cell in cells[TIMES] if state_of(cell) == "unstable")
    if unstable := next(falling, None):
        label, cell = unstable
        yield TIMES, f"{label} did not keep up with the load: {cell.state_why or 'unstable'}"


def _doubtful(kind: str, *sides: Series) -> Iterator[tuple[str, CellResult]]:
    """Yields cells of the sides that have too many doubtful ones to leave out, each with its label."""
    return ((side.label, cell) for side in sides if side.too_many_out(kind) for cell in side.cells)


def _pace(a: Series, b: Series) -> tuple[str, str | None]:
    """The one backend that served all that was sent, or "", and a reason if no rate can be compared."""
    states = {side.label: {state_of(cell) for _, cell in _doubtful(RATES, side)} for side in (a, b)}
    idle = [label for label, of_label in states.items() if UNDER_LOAD in of_label]
    if len(idle) == len(states):
        # A closed loop waits for its answers, so that rates differ by server, less what pauses hide of that.
        if any(cell.load.slots is not None for cell in (*a.cells, *b.cells)):
            return "", "pauses between requests limit both rates: neither is what its server can do"
        return "", "both served all that was sent: the load set the rate"
    if any(None in of_label for of_label in states.values()):
        return "", "it is not known whether the load or the server set the rate"
    kinds = {side.label: {cell.window_kind for cell in side.cells} - {None} for side in (a, b)}
    if all(kinds.values()) and len(set.union(*kinds.values())) > 1:
        return "", "measured over unlike windows: only the steady part, and all of it with ramp and drain"
    return "".join(idle), None
