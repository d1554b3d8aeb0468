"""The command of a run with other flags, and the time that it takes. Knows no question that it answers."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from harness.model import CellResult, Manifest, Summary, known
from harness.model.numbers import as_given
from harness.report.view import labels, repeats
from harness.report.wording import plain

AGAIN = "the same command"
BUDGET, DURATION, REQUESTS = "--budget", "--duration", "--requests"
REPEATS, MOST = "--repeats", "--max-repeats"
ROOM = 1.5  # times the time that more requests should take, where a duration would end them
MOST_REPEATS = 10  # the default limit of --repeats auto
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
_OF_AUTO = {MOST, BUDGET, "--set verdict.max_repeats", "--set verdict.min_repeats"}


@dataclass(frozen=True, slots=True)
class Change:
    """What a new run has other than the one before. `loads`: all of them; none: those of before.

    `numbers`: flags with their number. A key of --set is a flag too: `--set load.warmup_requests`.
    """

    kind: str = ""
    loads: tuple[float, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    auto: bool = False  # --repeats auto

    @property
    def of_cells(self) -> "Change":
        """The part that makes each cell longer: what cells at other loads need as well."""
        kept = {flag: number for flag, number in self.numbers.items() if flag not in (REPEATS, MOST, BUDGET)}
        return Change(numbers=kept)

    @property
    def of_tune(self) -> "Change":
        """What `bench tune` takes of it: its flags are a number of repeats and one load."""
        keys = {flag: f"--set {_KEYS[flag]}" for flag in (REQUESTS, DURATION)}
        numbers = {keys.get(flag, flag): number for flag, number in self.of_cells.numbers.items()}
        if repeats := self.numbers.get(REPEATS) or (self.auto and self.numbers.get(MOST, MOST_REPEATS)):
            numbers[REPEATS] = repeats
        return Change(numbers=numbers)

    @property
    def words(self) -> list[str]:
        found = [f"--{self.kind}", ",".join(map(as_given, self.loads))] if self.loads else []
        found += [REPEATS, "auto"] if self.auto else []
        for flag, number in self.numbers.items():
            option, _, key = flag.partition(" ")
            value = as_given(number) + ("s" if flag == BUDGET else "")
            found += [option, f"{key}={value}" if key else value]
        return found


def united(changes: Sequence[Change], summary: Summary, manifest: Manifest | None) -> Change:
    """One change for all: the most of each number, and all loads. More requests, and more loads, get the time
    that they need.
    """
    kind = next((change.kind for change in changes if change.loads), "")
    loads = {load for change in changes if change.kind == kind for load in change.loads}
    numbers: dict[str, float] = {}
    for flag, number in ((flag, number) for change in changes for flag, number in change.numbers.items()):
        numbers[flag] = max(number, numbers.get(flag, number))
    if (before_s := ends_s(manifest)) and (requests := numbers.get(REQUESTS)):
        each = (cell.makespan_s / cell.requests.ok for cell in summary.cells if cell.makespan_s)
        needed_s = math.ceil(ROOM * requests * max(each, default=0.0))
        if needed_s > before_s:
            numbers[DURATION] = max(needed_s, numbers.get(DURATION, 0.0))
    before = {cell.point for cell in summary.cells}
    if len(loads) > len(before) and (budget_s := numbers.get(BUDGET, _budget_s(summary))):
        numbers[BUDGET] = math.ceil(budget_s * len(loads) / len(before))
    return Change(kind, tuple(sorted(loads)), numbers, any(change.auto for change in changes))


def command(manifest: Manifest | None, change: Change) -> str:
    """The whole command for a shell; where it is not known, what to add to it."""
    typed = manifest.command if manifest else ()
    added = (change.of_tune if is_tune(manifest) else change).words
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
    flags = {word for word in change.words if word.startswith("--") and word != "--set"}
    gone = flags | {f"--set {_KEYS[flag]}" for flag in flags if flag in _KEYS}
    gone |= {flag for flag in change.numbers if " " in flag}
    if REPEATS in change.numbers:
        gone |= _OF_AUTO
    words = iter(typed)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag == "--set":
            setting = value if equals else next(words, "")
            if f"--set {setting.partition('=')[0]}" not in gone:
                yield from (flag, setting)
        elif flag not in gone:
            yield word
        elif not equals:
            next(words, None)


def expected_s(summary: Summary, manifest: Manifest | None, change: Change) -> float | None:
    """Time of a run with this change, by the time of the one before; the longest of --repeats auto, which a
    budget ends.

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
    loads = len(change.loads) or len({cell.point for cell in cells})
    backends = max(len(manifest.backends), len(labels(summary)))
    whole_s = each_s * backends * loads * _repeats(summary, change)
    budget_s = change.numbers.get(BUDGET, 0.0 if REPEATS in change.numbers else _budget_s(summary))
    return min(whole_s, budget_s or math.inf)


def _between_s(cells: Sequence[CellResult]) -> float:
    """Time of starts and pauses between the cells; none where engines were loaded at once."""
    ends = (cell.started_unix_ns / 1e9 + (cell.makespan_s or 0.0) for cell in cells)
    whole_s = max(ends) - min(cell.started_unix_ns for cell in cells) / 1e9
    return max(whole_s - math.fsum(cell.makespan_s or 0.0 for cell in cells), 0.0)


def _longer(cell: CellResult, manifest: Manifest, change: Change) -> float:
    """Times as long as this cell took, for more requests or a longer duration."""
    requests, seconds, before_s = change.numbers.get(REQUESTS), change.numbers.get(DURATION), ends_s(manifest)
    if requests:
        return requests / max(cell.requests.ok, 1)
    return seconds / before_s if seconds and before_s else 1.0


def ends_s(manifest: Manifest | None) -> float | None:
    """The time after which each load ends; None: its requests end it, or that is not known."""
    load = known(manifest.scenario.load) if manifest else None
    seconds = load.get("duration_s") if load else None
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def _repeats(summary: Summary, change: Change) -> float:
    blocks = summary.verdict_rules.blocks
    if fixed := change.numbers.get(REPEATS):
        return fixed * blocks
    if change.auto:
        return change.numbers.get(MOST, MOST_REPEATS) * blocks
    return summary.stopping.looks[-1] if summary.stopping else repeats(summary)


def _budget_s(summary: Summary) -> float:
    """Time that --repeats auto was allowed; 0: no limit."""
    return (summary.stopping.budget_s or 0.0) if summary.stopping else 0.0


def is_longest(summary: Summary, change: Change) -> bool:
    """Whether the expected time is an upper bound, as --repeats auto may end earlier."""
    return change.auto or (summary.stopping is not None and REPEATS not in change.numbers)
