"""What became different when figures became worse, by what the runs around that night recorded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from harness.errors import SpecError
from harness.model import Difference, HistoryEntry
from harness.model.grouping import grouped
from harness.report.wording import listing
from harness.store import RunFolder
from harness.verdicts.history import Change, Changed, Drift
from harness.verdicts.manifests import Side, differences

AROUND = 2  # nights: noise puts the first of a level that many too early or too late
MOST = 4  # differences that a sentence names
_VERSION = "engine version"


def with_changes(drifts: Iterable[Drift], results: Path) -> list[Drift]:
    """Each drift with what differs from run to run around each of its steps. `results` has their folders.

    Of a run that was removed or is damaged only the engine's version is known, from the history.
    """

    @cache
    def side(run: str, label: str) -> Side | None:
        folder = RunFolder(results / run)
        try:
            cells = [cell for cell in folder.read_summary().cells if cell.label == label]
            return Side(folder.read_manifest(), label, cells)
        except (OSError, SpecError):
            return None

    @cache
    def between(before: str, after: str, label: str) -> tuple[Difference, ...] | None:
        first, second = side(before, label), side(after, label)
        return None if first is None or second is None else tuple(differences(first, second))

    def around(step: Change) -> Iterator[Changed]:
        for before, after in pairwise(_around(step)):
            found = between(before.run, after.run, step.series.label)
            if found is None:
                found = tuple(_by_history(before, after))
            yield from (Changed(after, difference) for difference in found)

    return [
        replace(drift, steps=tuple(replace(step, changed=tuple(around(step))) for step in drift.steps))
        for drift in drifts
    ]


def _around(step: Change) -> Sequence[HistoryEntry]:
    entries = step.series.entries
    first = entries.index(step.since)
    return entries[max(first - AROUND, 0) : first + AROUND + 1]


def _by_history(before: HistoryEntry, after: HistoryEntry) -> Iterator[Difference]:
    first, second = (entry.engine_version or "not known" for entry in (before, after))
    if first != second:
        yield Difference(_VERSION, first, second, False)


def changed_words(steps: Sequence[Change]) -> str:
    """`engine version 0.26.0 to 0.27.0 (vllm, 2026-11-09)` of steps on one day."""
    found = grouped(
        ((f"{entry.what} {entry.baseline} to {entry.new}", run.created_utc[:10]), step.series.label)
        for step in steps
        for run, entry in step.changed
    )
    words = [f"{line} ({listing([*dict.fromkeys(labels)])}, {day})" for (line, day), labels in found.items()]
    more = [f"{len(words) - MOST} more"] if len(words) > MOST else []
    return "; ".join([*words[:MOST], *more]) or "nothing that bench knows of"
