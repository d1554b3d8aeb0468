"""The command of a run with other flags, and the time that it takes. Knows no question that it answers."""

import math
import shlex
from collections.abc import Iterator, Sequence
from statistics import fmean

from harness.model import CellResult, Manifest, Summary, known
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
from harness.report.view import labels, repeats
from harness.report.wording import plain

AGAIN = "the same command"
ROOM = 1.5  # times the time that more requests should take, where a duration would end them
MOST_REPEATS = 10  # the default limit of --repeats auto
LEAST_REPEATS = 3  # of --repeats auto
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
            found[flag] = change.get(MOST, MOST_REPEATS) if value == AUTO else value
        elif flag == SEED or flag.startswith(_REPEATABLE):
            found[flag] = value
    return found


def united(changes: Sequence[Change], summary: Summary, manifest: Manifest | None) -> dict[str, Value]:
    """One change for all. More requests, and more loads, get the time that they need."""
    found = most_of(changes)
    if found.get(SEED, 0) is None and manifest and manifest.seeds:
        found[SEED] = manifest.seeds.run + 1
    requests = max((number(change, REQUESTS) for change in changes if DURATION not in change), default=0)
    if (before_s := ends_s(manifest)) and requests:
        each = (cell.makespan_s / cell.requests.ok for cell in summary.cells if cell.makespan_s)
        needed_s = math.ceil(ROOM * requests * max(each, default=0.0))
        if needed_s > before_s:
            found[DURATION] = max(needed_s, number(found, DURATION))
    before, after = len({cell.point for cell in summary.cells}), len(loads(found))
    if after > before and (budget_s := number(found, BUDGET) or _budget_s(summary)):
        found[BUDGET] = math.ceil(budget_s * after / before)
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
    longer = fmean((cell.makespan_s or 0.0) * _longer(cell, manifest, change) for cell in cells)
    each_s = _between_s(cells) / len(cells) + longer
    if summary.capacity:
        return each_s * len(cells)
    points = len(loads(change)) or len({cell.point for cell in cells})
    backends = max(len(manifest.backends), len(labels(summary)))
    whole_s = each_s * backends * points * _repeats(summary, change, least)
    budget_s = number(change, BUDGET) or (0.0 if number(change, REPEATS) else _budget_s(summary))
    return min(whole_s, budget_s or math.inf)


def _between_s(cells: Sequence[CellResult]) -> float:
    """Time of starts and pauses between the cells; none where engines were loaded at once."""
    ends = (cell.started_unix_ns / 1e9 + (cell.makespan_s or 0.0) for cell in cells)
    whole_s = max(ends) - min(cell.started_unix_ns for cell in cells) / 1e9
    return max(whole_s - math.fsum(cell.makespan_s or 0.0 for cell in cells), 0.0)


def _longer(cell: CellResult, manifest: Manifest, change: Change) -> float:
    """Times as long as this cell took, for more requests or a longer duration."""
    requests, seconds, before_s = number(change, REQUESTS), number(change, DURATION), ends_s(manifest)
    if requests:
        return requests / max(cell.requests.ok, 1)
    return seconds / before_s if seconds and before_s else 1.0


def ends_s(manifest: Manifest | None) -> float | None:
    """The time after which each load ends; None: its requests end it, or that is not known."""
    load = known(manifest.scenario.load) if manifest else None
    seconds = load.get("duration_s") if load else None
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def _repeats(summary: Summary, change: Change, least: bool) -> float:
    blocks = summary.verdict_rules.blocks
    if fixed := number(change, REPEATS):
        return fixed * blocks
    if change.get(REPEATS) == AUTO:
        most = number(change, MOST) or MOST_REPEATS
        return (min(LEAST_REPEATS, most) if least else most) * blocks
    return summary.stopping.looks[0 if least else -1] if summary.stopping else repeats(summary)


def _budget_s(summary: Summary) -> float:
    """Time that --repeats auto was allowed; 0: no limit."""
    return (summary.stopping.budget_s or 0.0) if summary.stopping else 0.0


def is_longest(summary: Summary, change: Change) -> bool:
    """Whether the expected time is an upper bound, as --repeats auto may end earlier."""
    return change.get(REPEATS) == AUTO or (summary.stopping is not None and REPEATS not in change)
