"""Finds the highest load at which each backend keeps the scenario's limits, from several searches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.model import METRICS, Backlog, Capacity, CellResult, Limit, TestedLoad
from harness.verdicts.run_values import labels
from harness.verdicts.slo_check import kept_limits, queue_reasons, why_not_kept

# Slightly above the capacity, limits may be kept by chance, and the queue grows for longer than a probe
# lasts. So the answer of an open loop is below the load that kept the limits, and below what was served.
RESERVE = 0.03
MOST_USED = 0.955  # of the highest rate at which requests left
USER_EVERY_S = 30  # of the sentence about users
KNEE = 0.05  # least share of more answers that doubling the load of a closed loop must bring


@dataclass(frozen=True, slots=True)
class _Found:
    """Result of one search. `kept` and `failed` are from its long probes, which decide."""

    kept: float | None  # highest load that kept the limits, below all that failed
    answer: float | None  # with the reserve of an open loop
    failed: tuple[float, ...]
    short: float | None  # highest load that kept them in a short probe


def capacity(cells: Sequence[CellResult], searches: int) -> tuple[Capacity, ...]:
    """The `capacity` list of summary.json.

    `cells` of repeats `searches` and above are long probes. `kept_by_search` has the highest load of each
    search that kept the limits in one. `value` is the median over the searches (the lower of the middle two),
    with a reserve if the loop is open; null if there is none. `interval` is [lowest of the searches, `value`,
    lowest load above it that failed a long probe].
    """
    return tuple(
        _of(label, [cell for cell in cells if cell.label == label], searches) for label in labels(cells)
    )


def _of(label: str, cells: Sequence[CellResult], searches: int) -> Capacity:
    repeats = sorted({cell.repeat % searches for cell in cells})
    tried = [
        _search([cell for cell in cells if cell.repeat % searches == repeat], searches) for repeat in repeats
    ]
    tested = tuple(_tested(cells, searches))
    answers = _ascending([search.answer for search in tried])
    value = answers[(len(answers) - 1) // 2]
    failed = sorted(load for search in tried for load in search.failed if value is None or load > value)
    return Capacity(
        label=label,
        kind="rate" if cells[0].load.kind == "rate" else "concurrency",
        value=value,
        kept_by_search=tuple(search.kept for search in tried),
        kept_short=max((search.short for search in tried if search.short is not None), default=None),
        interval=(answers[0], value, next(iter(failed), None)),
        searches=len(tried),
        tested=tested,
        saturated_from=next((search.value for search in tested if search.saturated), None),
    )


def _ascending(kept: Sequence[float | None]) -> list[float | None]:
    """Sorts answers; a search without an answer counts as below all others."""
    return sorted(kept, key=lambda load: -math.inf if load is None else load)


def _search(cells: Sequence[CellResult], searches: int) -> _Found:
    long = {cell.load.value: not why_not_kept(cell) for cell in cells if cell.repeat >= searches}
    short = [cell.load.value for cell in cells if cell.repeat < searches and kept_limits(cell, short=True)]
    failed = sorted(load for load, kept in long.items() if not kept)
    lowest = min(failed, default=math.inf)
    kept = max((load for load, kept in long.items() if kept and load < lowest), default=None)
    decided = [cell for cell in cells if cell.repeat >= searches]
    return _Found(kept, _with_reserve(kept, decided, failed), tuple(failed), max(short, default=None))


def _with_reserve(kept: float | None, cells: Sequence[CellResult], failed: Sequence[float]) -> float | None:
    """The load that kept the limits, less a reserve if the loop is open and a higher load failed.

    If no load failed, the highest one only shows that the capacity is above it.
    """
    if kept is None or not failed or cells[0].load.kind != "rate":
        return kept
    left = max(_left_per_s(cell.backlog, cell.requests.failed) for cell in cells if cell.backlog)
    return float(f"{min((1 - RESERVE) * kept, MOST_USED * left):.3g}")


def _left_per_s(queue: Backlog, failed: int) -> float:
    """Rate of requests that left the system, answered or failed."""
    return (queue.answered + failed) / queue.window_s


def _tested(cells: Sequence[CellResult], searches: int) -> Iterator[TestedLoad]:
    """Yields a row for each load that was tried, ascending."""
    served: dict[float, float] = {}
    for value in sorted({cell.load.value for cell in cells}):
        here = [cell for cell in cells if cell.load.value == value]
        rates = [rate for cell in here if (rate := cell.requests_per_s) is not None]
        if rates:
            served[value] = float(np.mean(rates))
        saturated = _saturated(here[0].load.kind, value, served, here)
        failed = [why for cell in here for why in why_not_kept(cell, short=cell.repeat < searches)[:1]]
        shares = [cell.slo.attainment for cell in here if cell.slo is not None]
        yield TestedLoad(
            value=value,
            runs=len(here),
            kept=len(here) - len(failed),
            attainment=float(np.mean(shares)) if shares else None,
            requests_per_s=served.get(value),
            saturated=saturated is not None,
            why=next(iter(failed), saturated),
        )


def _saturated(
    kind: str, value: float, served: Mapping[float, float], cells: Sequence[CellResult]
) -> str | None:
    """A sign that more load no longer means more work done; None if it does, or if that is not known."""
    if value not in served:
        return "nothing was answered in time"
    if kind == "rate":
        return next((why for cell in cells for why in queue_reasons(cell)), None)
    half = [load for load in served if load <= value / 1.9]
    if half and served[value] < (1 + KNEE) * served[max(half)]:
        return f"{served[value]:.3g} requests/s, at {max(half):g} in flight it was {served[max(half)]:.3g}"
    return None


def words(capacity: Capacity) -> str:
    """`vllm: 20 requests/s keep the limits (3 searches: 19.4, 20, 20); 21.1 does not; saturated from 24`."""
    unit = "requests/s" if capacity.kind == "rate" else "in flight"
    knee = capacity.saturated_from
    saturated = f"; saturated from {knee:.3g}" if knee is not None else ""
    answer = (
        _answer(capacity, unit) if capacity.kept_by_search is not None else _answer_of_before(capacity, unit)
    )
    return f"{capacity.label}: {answer}{saturated}"


def sentence(capacity: Capacity, limits: Sequence[Limit]) -> str | None:
    """`vllm carries 15 requests/s (14 to 16) within TTFT p95 2 s: about 450 users who send one every 30 s.`

    None without an answer, and for a closed loop, whose users wait for their answers.
    """
    low, value, fails = capacity.interval
    if capacity.kind != "rate" or value is None or low is None or not limits:
        return None
    span = f"{low:.3g} or more" if fails is None else f"{low:.3g} to {fails:.3g}"
    within = " and ".join(
        f"{METRICS[limit.metric].short} {limit.share} {limit.limit_ms / 1000:.3g} s" for limit in limits
    )
    users = f"about {float(f'{value * USER_EVERY_S:.2g}'):,.0f} users who send one every {USER_EVERY_S} s"
    return f"{capacity.label} carries {value:.3g} requests/s ({span}) within {within}: {users}."


def _answer(capacity: Capacity, unit: str) -> str:
    value, fails = capacity.value, capacity.interval[2]
    each = ", ".join("none" if kept is None else f"{kept:.3g}" for kept in capacity.kept_by_search or ())
    long = f"kept in long probes: {each}"
    if value is not None and fails is not None:
        return f"{value:.3g} {unit} keep the limits ({long}); {fails:.3g} does not"
    if value is not None:
        return f"at least {value:.3g} {unit} keep the limits, the highest load tried ({long})"
    if capacity.kept_short is not None:
        return f"not decided: {capacity.kept_short:.3g} {unit} kept the limits for a short time only"
    why = capacity.tested[0].why if capacity.tested else "nothing was measured"
    return f"below {fails:.3g} {unit}, the lowest load tried: {why}"


def _answer_of_before(capacity: Capacity, unit: str) -> str:
    """The answer of a summary from before long probes, which only brackets the capacity."""
    low, _, high = ("?" if end is None else f"{end:.3g}" for end in capacity.interval)
    return f"between {low} and {high} {unit}, not confirmed by long probes: measure it again"
