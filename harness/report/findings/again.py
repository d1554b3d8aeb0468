"""The command of a run with other flags, and the time that it takes. Knows no question that it answers."""

import math
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from statistics import fmean

from harness.model import UNSET, CellResult, Manifest, Summary, known
from harness.model.change import (
    AUTO,
    BUDGET,
    DURATION,
    LOADS,
    MOST,
    REPEATS,
    REQUESTS,
    SEED,
    Change,
    Value,
    number,
    words,
)
from harness.model.change import united as most_of
from harness.model.choices import AUTO_REPEATS, SERVER_BLOCKS
from harness.report.view import labels, repeats
from harness.report.wording import plain

AGAIN = "the same command"
_LONGEST = 4_000  # characters of a command that is shown to be copied

# Keys of --set that say what a flag says.
_KEYS = {
    "--concurrency": "load.concurrency",
    "--rate": "load.rate",
    REQUESTS: "load.requests",
    DURATION: "load.duration_s",
    REPEATS: "verdict.repeats",
    MOST: "verdict.max_repeats",
}
_REPEATABLE = ("--set", "--engine-set")
_OF_AUTO = {MOST, BUDGET, "--set verdict.max_repeats", "--set verdict.min_repeats"}


def taken(change: Change, summary: Summary, manifest: Manifest | None) -> Change:
    """What a run of this kind takes of an advice: a search chooses the sizes of its cells itself, and
    `bench tune` has few flags. No command measures an imported run again.
    """
    if any(cell.imported for cell in summary.cells):
        return {}
    refused = (REQUESTS, DURATION) if summary.capacity else ()
    asked = {flag: value for flag, value in change.items() if flag not in refused}
    if is_tune(manifest):
        asked = {flag: value for flag, value in asked.items() if _of_tune({flag: value})}
    return asked


def _of_tune(change: Change) -> Change:
    """Flags of `bench tune`: it takes a number of repeats, and one load."""
    found: dict[str, Value] = {}
    for flag, value in change.items():
        if flag in (REQUESTS, DURATION):
            found[f"--set {_KEYS[flag]}"] = value
        elif flag == REPEATS:
            found[flag] = change.get(MOST, AUTO_REPEATS[1]) if value == AUTO else value
        elif flag == SEED or flag.startswith(_REPEATABLE):
            found[flag] = value
    return found


def united(changes: Sequence[Change], summary: Summary, manifest: Manifest | None) -> dict[str, Value]:
    """One change for all. More loads get the time that they need, and higher ones as many waves as before."""
    found = most_of(changes)
    if found.get(SEED, 0) is None and manifest and manifest.seeds:
        found[SEED] = manifest.seeds.run + 1
    before, after = {cell.point.value for cell in summary.cells}, loads(found)
    if len(after) > len(before) and (budget_s := number(found, BUDGET) or _budget_s(summary)):
        found[BUDGET] = math.ceil(budget_s * len(after) / len(before))
    if "--concurrency" in found and not summary.capacity and min(after) > max(before):
        by_time = any(cell.requests.unsent for cell in summary.cells)
        sent = 0 if by_time else max(cell.requests.planned for cell in summary.cells)
        if requests := number(found, REQUESTS) or sent:
            found[REQUESTS] = math.ceil(requests * max(after) / max(before))
    return found


def loads(change: Change) -> tuple[float, ...]:
    """All loads of the new run; (): those of before."""
    given = (change.get(flag) for flag in LOADS)
    return next((found for found in given if isinstance(found, tuple)), ())


def command(manifest: Manifest | None, change: Change) -> str:
    """The whole command for a shell; where it is not known, what to add to it."""
    typed = manifest.command if manifest else ()
    added = words(_of_tune(change) if is_tune(manifest) else change)
    if typed[:2] == ("bench", "run"):
        line = shlex.join([*typed[:2], *_kept(typed[2:], change), *added])
        if plain(line, _LONGEST) == line:
            return line
    return f"{AGAIN} with `{' '.join(added)}`" if added else AGAIN


def is_tune(manifest: Manifest | None) -> bool:
    """Whether the run is the comparison with which `bench tune` ends."""
    return manifest is not None and manifest.command[:2] == ("bench", "tune")


def _kept(typed: Sequence[str], change: Change) -> Iterator[str]:
    """The words of a command without the flags that are given again, and without what these refuse."""
    gone = {*change, *(f"--set {_KEYS[flag]}" for flag in change if flag in _KEYS)}
    if number(change, REPEATS):
        gone |= _OF_AUTO
    given = iter(typed)
    for word in given:
        flag, equals, value = word.partition("=")
        if flag in _REPEATABLE:
            setting = value if equals else next(given, "")
            if f"{flag} {setting.partition('=')[0]}" not in gone:
                yield from (flag, setting)
        elif flag not in gone:
            yield word
        elif not equals:
            next(given, None)


def expected_s(
    summary: Summary, manifest: Manifest | None, change: Change, *, least: bool = False
) -> float | None:
    """Time of a run with this change, by the time of the one before; the longest or the `least` of --repeats
    auto, which a budget ends.

    None where that was resumed: the time between its cells is not of measuring. None after `bench tune`, as
    it searches first.
    """
    cells = [cell for cell in summary.cells if cell.makespan_s and not cell.imported]
    if not cells or manifest is None or manifest.resumed_utc or is_tune(manifest):
        return None
    between_s = _between_s(cells, manifest)
    if summary.capacity:
        return math.fsum(between_s + _cell_s(cell, manifest, change) for cell in cells)
    points = loads(change) or tuple({cell.point.value for cell in cells})
    each_s = math.fsum(between_s + _at(point, cells, manifest, change) for point in points)
    backends = max(len(manifest.backends), len(labels(summary)))
    whole_s = each_s * backends * _repeats(summary, manifest, change, least)
    budget_s = number(change, BUDGET) or (0.0 if number(change, REPEATS) else _budget_s(summary))
    return min(whole_s, budget_s or math.inf)


def _between_s(cells: Sequence[CellResult], manifest: Manifest) -> float:
    """Time of starts and pauses before a cell; none where engines were loaded at once. Of a single cell, that
    since the run began.
    """
    begin = min(cell.started_unix_ns for cell in cells) / 1e9
    if len(cells) == 1:
        return max(begin - datetime.fromisoformat(manifest.created_utc).timestamp(), 0.0)
    loads_s = [(cell.makespan_s or 0.0) + _warm_s(cell) for cell in cells]
    ends = (cell.started_unix_ns / 1e9 + seconds for cell, seconds in zip(cells, loads_s, strict=True))
    return max(max(ends) - begin - math.fsum(loads_s), 0.0) / (len(cells) - 1)


def _warm_s(cell: CellResult) -> float:
    """Time of the warm-up, which stays as it is however long the measured part becomes."""
    return max((cell.client.wall_s or 0.0) - (cell.makespan_s or 0.0), 0.0)


def _at(load: float, cells: Sequence[CellResult], manifest: Manifest, change: Change) -> float:
    """Time of a cell at this load, by those at the load nearest to it. The smallest working set is 0."""
    nearest = min(
        (cell.point.value for cell in cells), key=lambda value: abs(math.log1p(value) - math.log1p(load))
    )
    return fmean(_cell_s(cell, manifest, change) for cell in cells if cell.point.value == nearest)


def _cell_s(cell: CellResult, manifest: Manifest, change: Change) -> float:
    """Time of this cell with the change: its requests end it or its duration, whichever is over first."""
    lasted_s, before_s = cell.makespan_s or 0.0, ends_s(manifest)
    by_time = before_s is not None and cell.requests.unsent > 0
    by_requests_s = math.inf if by_time else lasted_s
    if requests := number(change, REQUESTS):
        by_requests_s = lasted_s * requests / max(cell.requests.ok, 1)
    until_s = number(change, DURATION) or before_s or math.inf
    measured_s = min(by_requests_s, lasted_s + until_s - (before_s or 0.0) if by_time else until_s)
    return measured_s + _warm_s(cell)


def ends_s(manifest: Manifest | None) -> float | None:
    """The time after which each load ends; None: its requests end it, or that is not known."""
    load = known(manifest.scenario.load) if manifest else None
    seconds = load.get("duration_s") if load else None
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def _repeats(summary: Summary, manifest: Manifest, change: Change, least: bool) -> float:
    if fixed := number(change, REPEATS):
        return fixed * summary.verdict_rules.blocks
    if change.get(REPEATS) != AUTO and not summary.stopping:
        return repeats(summary)
    first, last = auto_repeats(summary, manifest)
    last = int(number(change, MOST)) or last
    return (min(first, last) if least else last) * summary.verdict_rules.blocks


def auto_repeats(summary: Summary, manifest: Manifest | None) -> tuple[int, int]:
    """The least and the most of --repeats auto, where no flag of a new run says how many."""
    rules = summary.verdict_rules
    if summary.stopping:
        looks = summary.stopping.looks
        return looks[0] // rules.blocks, looks[-1] // rules.blocks
    if rules.pairing != "starts" and set(rules.between_repeats.values()) == {"keep"}:
        return SERVER_BLOCKS
    declared = known(manifest.scenario.verdict) if manifest else None
    least, most = (declared.min_repeats, declared.max_repeats) if declared else (UNSET, UNSET)
    return known(least) or AUTO_REPEATS[0], known(most) or AUTO_REPEATS[1]


def _budget_s(summary: Summary) -> float:
    """Time that --repeats auto was allowed; 0: no limit."""
    return (summary.stopping.budget_s or 0.0) if summary.stopping else 0.0


def is_longest(summary: Summary, change: Change) -> bool:
    """Whether the expected time is an upper bound, as --repeats auto may end earlier."""
    return change.get(REPEATS) == AUTO or (summary.stopping is not None and REPEATS not in change)
