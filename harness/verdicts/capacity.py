"""Answers a capacity search: the load up to which each backend keeps the scenario's limits."""

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter

import numpy as np
from msgspec.structs import replace

from harness.errors import ExitCode
from harness.model import Capacity, CellResult, IssueCode, Summary, TestedLoad, labels
from harness.model.numbers import as_given, counted, short
from harness.validity import RULES, blame
from harness.verdicts.crossing import (
    Crossing,
    crossing,
    left_per_s,
    of_starts,
    refuted_at,
    short_and_long,
    slow_starts,
    undisturbed,
)
from harness.verdicts.slo_check import (
    CHANCE,
    SHORT_CHANCE,
    is_spoiled,
    kept_limits,
    queue_reasons,
    why_not_kept,
)

SURE = 0.9  # probability that the limits are kept at the answer, before the reserve of an open loop
INTERVAL = 0.95
# A queue grows slowly where the load is slightly above the capacity, and a probe begins without one. So the
# answer of an open loop is below the estimate, and below what was served, and its interval is wider.
RESERVE = 0.035
MOST_USED = 0.955  # of the highest rate at which requests left
_SPOILED = "client, machine or other traffic spoiled probes at"
KNEE = 0.05  # least share of more answers that doubling the load of a closed loop must bring


def capacity(
    cells: Sequence[CellResult],
    searches: int,
    *,
    interrupted: bool = False,
    highest: float | None = None,
) -> tuple[Capacity, ...]:
    """The `capacity` list of summary.json.

    `cells` of repeats `searches` and above are long probes; modulo `searches` a repeat is the engine's start.
    `interrupted`: the run was, and the probe that this cut short says nothing of its load. `highest`: the
    load at which the search was to end.
    """
    found = (
        _of(label, [cell for cell in cells if cell.label == label], searches, interrupted)
        for label in labels(cells)
    )
    return tuple(replace(each, highest=highest) for each in found)


def _of(label: str, probes: Sequence[CellResult], searches: int, interrupted: bool) -> Capacity:
    cells = [
        cell for cell in probes if not (interrupted and (cell.requests.unsent or cell.requests.cancelled))
    ]
    short, long = short_and_long(cells, searches)
    starts = sorted({cell.repeat % searches for cell in cells})
    slow = slow_starts(short, long, searches)
    alike = [_counted(short, long, searches, group) for group in ({*starts} - slow, slow) if group]
    trusted = [cell for _, counted in alike for cell in counted]
    tested = tuple(_tested(short, trusted, Counter(cell.load.value for cell in cells)))
    low, value, high = _over_starts([_answer(*group) for group in alike], 2 * len(slow) < len(starts))
    if _nothing_known(value, tested):  # what the client spoiled counts as too much, and is no end of its own
        high = next((tried.value for tried in tested if _failed_itself(tried)), None)
    kept_short = [cell.load.value for cell in short if kept_limits(cell, short=True)]
    return Capacity(
        label=label,
        kind="rate" if probes[0].load.kind == "rate" else "concurrency",
        value=value,
        kept_by_search=tuple(_kept([c for c in trusted if c.repeat % searches == start]) for start in starts),
        kept_short=max(kept_short, default=None),
        interval=(low, value, high),
        searches=len(starts),
        slow_starts=tuple(starts.index(start) for start in sorted(slow)),
        tested=tested,
        saturated_from=next((tried.value for tried in tested if tried.saturated), None),
    )


def _kept(long: Sequence[CellResult]) -> float | None:
    """Highest load that kept the limits as measured, below all that failed."""
    failed = refuted_at(long)
    return max((cell.load.value for cell in long if cell.load.value < failed), default=None)


_Ends = tuple[float | None, float | None, float | None]  # low end, answer and high end


def _counted(
    short: Sequence[CellResult], long: Sequence[CellResult], searches: int, group: Container[int]
) -> tuple[list[CellResult], list[CellResult]]:
    """The short probes of these starts, and the long ones that count."""
    mine = of_starts(short, searches, group)
    return mine, undisturbed(mine, of_starts(long, searches, group), searches)


def _over_starts(answers: Sequence[_Ends], most_are_fast: bool) -> _Ends:
    """`answers`: of the fast starts and of the slow ones, where there are both. The interval spans them, and
    the answer is that of most starts.
    """
    if not answers:
        return None, None, None
    _, value, _ = answers[0 if most_are_fast else -1]
    return answers[-1][0], value, answers[0][2]


def _answer(short: Sequence[CellResult], long: Sequence[CellResult]) -> _Ends:
    """Low end, answer and high end, which is unknown where the highest load tried surely keeps the limits.

    The first two are unknown where no long probe kept them: short ones do so by chance.
    """
    if not long:
        return None, None, None
    loads, found = sorted(cell.load.value for cell in (*short, *long)), crossing(short, long)
    if _kept(long) == loads[-1] <= found.quantile(1 - SURE):
        return loads[-1], loads[-1], None
    kept = any(map(kept_limits, long))  # else how slowly the share grows below what was tried is not known
    ends = [found.quantile(share) for share in ((1 - INTERVAL) / 2, 1 - SURE, (1 + INTERVAL) / 2)]
    low, value = (_with_reserve(end, found, long) if kept and end >= loads[0] else None for end in ends[:2])
    return low, value, math.floor(ends[2]) + 1 if found.whole else _rounded((1 + RESERVE) * ends[2])


def _with_reserve(load: float, found: Crossing, long: Sequence[CellResult]) -> float:
    if found.whole:
        return math.floor(load)
    return _rounded(min((1 - RESERVE) * load, MOST_USED * max(map(left_per_s, long))))


def _rounded(load: float) -> float:
    return float(f"{load:.3g}")


def _tested(
    short_ones: Sequence[CellResult], long: Sequence[CellResult], tried: Mapping[float, int]
) -> Iterator[TestedLoad]:
    """Yields a row for each load, ascending. `tried`: probes of each load, with those that do not count."""
    cells = [*((cell, True) for cell in short_ones), *((cell, False) for cell in long)]
    served: dict[float, float] = {}
    for value, runs in sorted(tried.items()):
        here = [(cell, is_short) for cell, is_short in cells if cell.load.value == value]
        rates = [rate for cell, _ in here if (rate := cell.requests_per_s) is not None]
        if rates:
            served[value] = float(np.mean(rates))
        saturated = _saturated(value, served, here)
        failed = [
            (is_spoiled(cell, short=is_short), why)
            for cell, is_short in here
            for why in why_not_kept(cell, short=is_short)[:1]
        ]
        failed.sort(key=itemgetter(0))  # what is the server's stands first
        not_server, why = next(iter(failed), (False, saturated))
        shares = [cell.slo.attainment for cell, _ in here if cell.slo is not None]
        yield TestedLoad(
            value=value,
            runs=runs,
            kept=len(here) - len(failed),
            attainment=float(np.mean(shares)) if shares else None,
            requests_per_s=served.get(value),
            saturated=saturated is not None,
            why=why,
            spoiled=not_server,
            disturbed=runs - len(here),
        )


def _saturated(
    value: float, served: Mapping[float, float], probes: Sequence[tuple[CellResult, bool]]
) -> str | None:
    """A sign that more load no longer means more work done; None if it does, or if that is not known: an
    engine that died left requests unanswered at any load.

    `probes`: of this load, each with whether it is a short one.
    """
    if any(reason.code == IssueCode.ENGINE_DIED for cell, _ in probes for reason in cell.validity.reasons):
        return None
    if value not in served:
        return "nothing was answered in time"
    if probes[0][0].load.kind == "rate":
        chances = ((cell, SHORT_CHANCE if is_short else CHANCE) for cell, is_short in probes)
        return next((why for cell, chance in chances for why in queue_reasons(cell, chance)), None)
    half = [load for load in served if load <= value / 1.9]
    if half and served[value] < (1 + KNEE) * served[max(half)]:
        return (
            f"{short(served[value])} requests/s, at {_load_words('concurrency', max(half))} it was "
            f"{short(served[max(half)])}"
        )
    return None


def words(capacity: Capacity) -> str:
    """`vllm: 20 requests/s keep the limits (95% interval 19.4 to 21.1; 12 probes in 3 searches)`."""
    knee = capacity.saturated_from
    saturated = f"; saturated from {as_given(knee)}" if knee is not None else ""
    _, value, _ = capacity.interval
    unknown = _nothing_known(value, capacity.tested)
    higher = f"; {why}" if (why := _why_higher(capacity)) and not unknown else ""
    again = "".join(
        f"; measured again at {as_given(tried.value)}: {left_out}"
        for tried in capacity.tested
        if (left_out := left_out_words(tried))
    )
    slower = "".join(map(partial(_slower_words, capacity), capacity.slow_starts))
    return f"{capacity.label}: {_answer_words(capacity)}{saturated}{higher}{again}{slower}"


def _slower_words(capacity: Capacity, start: int) -> str:
    kept = (capacity.kept_by_search or ())[start]
    carried = f"it carried {as_given(kept)}" if kept is not None else "it kept the limits at no load"
    return f"; start {start + 1} was slower each time it was measured: {carried}"


def left_out_words(tried: TestedLoad) -> str:
    return f"{counted(tried.disturbed, 'disturbed probe')} left out" if tried.disturbed else ""


def is_answer(capacity: Capacity) -> bool:
    """Whether long probes found a load that keeps the limits; an earlier version had none."""
    return capacity.interval[1] is not None and capacity.kept_by_search is not None


def brief(capacity: Capacity) -> str:
    """`20 (19.4 to 21.1)`, of an answer."""
    low, value, high = capacity.interval
    found = f"{as_given(value or 0.0)}{' or more' if may_be_higher(capacity) else ''}"
    return f"{found} ({'?' if low is None else as_given(low)} to {as_given(high)})" if high else found


def why_unknown(capacity: Capacity) -> str:
    """Reason why there is no figure to be followed over runs; "" where the server alone decided.

    A load that nobody could try harder, `at least 64 requests/s`, is a figure.
    """
    _, value, _ = capacity.interval
    return _answer_words(capacity) if value is None else _why_higher(capacity)


def exit_code(summary: Summary, *, failures: bool) -> ExitCode:
    """The code of a run that came to its end. `failures`: a backend could not be measured."""
    if failures:
        return ExitCode.SETUP
    wrong = summary.state == "invalid" and invalid_cells(summary.cells, summary.capacity)
    return ExitCode.INVALID if wrong else ExitCode.OK


def invalid_cells(cells: Sequence[CellResult], found: Sequence[Capacity] | None) -> list[CellResult]:
    """All that a run has to answer for: not the probes that asked for more than a search found to be carried
    and failed by that alone, nor those that the client spoiled and another one replaced. `found`: None if
    nothing was searched for.
    """
    carried = {answer.label: answer.interval[1] for answer in found or () if not why_unknown(answer)}
    beyond = (cell.load.value > (carried.get(cell.label) or math.inf) for cell in cells)
    replaced = [cell for answer in found or () for cell in _replaced(cells, answer)]
    return [
        cell
        for cell, asked_more in zip(cells, beyond, strict=True)
        if cell.invalid and not (asked_more and _overloaded(cell)) and cell not in replaced
    ]


def _replaced(cells: Sequence[CellResult], answer: Capacity) -> list[CellResult]:
    """The long probes that the client spoiled, and that are left out for another one at their load."""
    starts = max(answer.searches, 1)  # 0 where an interruption left none
    short, long = short_and_long([cell for cell in cells if cell.label == answer.label], starts)
    trusted = undisturbed(short, long, starts)
    return [cell for cell in long if is_spoiled(cell) and cell not in trusted]


def _overloaded(cell: CellResult) -> bool:
    found = blame(cell.validity)
    return found is not None and found[0] == "engine" and not RULES[found[1]].certain


def surely_carried(capacity: Capacity) -> float:
    """The load up to which no request has to fail: an open loop near its capacity has bursts that a server
    may refuse, so there it is half of the answer. 0 without one.
    """
    return (capacity.interval[1] or 0.0) / (2 if capacity.kind == "rate" else 1)


def may_be_higher(capacity: Capacity) -> bool:
    """Whether no load is known to be too much for the server itself."""
    _, _, high = capacity.interval
    return high is None or any(_spoiled(capacity))


def _why_higher(capacity: Capacity) -> str:
    spoiled = ", ".join(_spoiled(capacity))
    return f"may be higher: {_SPOILED} {spoiled}" if spoiled else ""


def _nothing_known(value: float | None, tested: Sequence[TestedLoad]) -> bool:
    """Whether there is no answer, and the client spoiled the lowest load: the server may keep the limits."""
    return value is None and any(tried.spoiled and not tried.kept for tried in tested[:1])


def _failed_itself(tried: TestedLoad) -> bool:
    return not tried.spoiled and tried.kept < tried.runs - tried.disturbed


def _spoiled(capacity: Capacity) -> Iterator[str]:
    """Yields the loads that count as too much for a reason that is not the server's, up to its own first."""
    sure = max((kept for kept in capacity.kept_by_search or () if kept is not None), default=0.0)
    for tried in capacity.tested:
        if tried.spoiled:
            if tried.value > sure:
                yield as_given(tried.value)
        elif _failed_itself(tried):
            return


def _load_words(kind: str, value: float) -> str:
    """Users, as the table has it, and not requests in flight: who thinks before the next one has none."""
    return f"{as_given(value)} {'requests/s' if kind == 'rate' else 'user' if value == 1 else 'users'}"


def _answer_words(capacity: Capacity) -> str:
    low, value, high = capacity.interval
    load_words = partial(_load_words, capacity.kind)
    keep = "keeps" if capacity.kind == "concurrency" and value == 1 else "keep"
    if capacity.kept_by_search is None:  # of an earlier version, without long probes: it only brackets it
        ends = ("?" if end is None else as_given(end) for end in (low, high))
        unit = "requests/s" if capacity.kind == "rate" else "users"
        return f"between {' and '.join(ends)} {unit}, not confirmed by long probes: measure it again"
    probes = sum(tried.runs for tried in capacity.tested)
    effort = f"{counted(probes, 'probe')} in {counted(capacity.searches, 'search')}"
    if value is not None and high is not None:
        return f"{load_words(value)} {keep} the limits ({_span(low, high)}; {effort})"
    if value is not None:
        return f"at least {load_words(value)} {keep} the limits, the highest load tried ({effort})"
    if _nothing_known(value, capacity.tested):
        spoiled, reason = dict.fromkeys(_spoiled(capacity)), capacity.tested[0].why
        return f"not decided: {_SPOILED} {', '.join(spoiled)}{f': {reason}' if reason else ''}"
    if capacity.kept_short is not None and high is None:
        return f"not decided: {load_words(capacity.kept_short)} kept the limits for a short time only"
    if not capacity.tested:
        return "not decided: nothing was measured"
    lowest = capacity.tested[0]
    load, why = f"{load_words(lowest.value)}, the lowest load tried", lowest.why and f": {lowest.why}"
    if high is not None and lowest.kept == lowest.runs and not any(capacity.kept_by_search or ()):
        return f"not decided: no long probe kept the limits ({_span(low, high)}; {effort})"
    reserve = RESERVE if capacity.kind == "rate" else 0.0
    if high is not None and high > (1 + reserve) * lowest.value:
        return f"not sure of {load} ({_span(low, high)}; {effort}){why or ''}"
    above = max(tried.value for tried in capacity.tested if tried.kept or tried is lowest)
    though = f", though {as_given(above)} kept them" if above > lowest.value else ""
    miss = "misses" if capacity.kind == "concurrency" and lowest.value == 1 else "miss"
    return f"{load}, {miss} the limits{though}{why or ''}"


def _span(low: float | None, high: float) -> str:
    ends = f"up to {as_given(high)}" if low is None else f"{as_given(low)} to {as_given(high)}"
    return f"{100 * INTERVAL:g}% interval {ends}"
