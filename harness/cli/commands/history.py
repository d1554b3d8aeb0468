"""`bench history`: runs added to the history of this results folder, and what has become slower over it."""

import argparse
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.output import print_note, progress_display
from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import ExitCode, SpecError
from harness.model import HistoryEntry, Record
from harness.report.wording import plain

if TYPE_CHECKING:
    from harness.store import RunFolder

EPILOG = """A level needs three runs or more: one bad night is no change; many small changes add up.
--fail-on slower passes with a warning until a figure has the six runs of two levels, so that a history can
begin. If RUN is given, it judges the figures of these runs alone: what was last measured long ago is shown.

Exit codes: 0 success; 1 with --fail-on slower, if a level is worse than the best before it;
2 no history, or a damaged run."""


@dataclass(frozen=True)
class Options(Flags):
    runs: tuple[str, ...]
    out: Path
    fail_on: str | None
    since: str
    floor: float
    markdown: bool


class _Added(Record, frozen=True, kw_only=True):
    """What a run adds to the history, and why it adds nothing of some backends and loads."""

    run: str
    lines: tuple[HistoryEntry, ...]
    not_kept: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"runs to add first: {options.RUN_HELP}")
    options.add_runs_folder(parser, holds="runs and history")
    options.add_fail_on(parser, "a level became worse")
    parser.add_argument(
        "--since",
        default="",
        metavar="DAY",
        help="look at runs from this day on: what became worse before it is accepted",
    )
    options.add_floor(parser, "smallest change that counts (default: 5)", 5.0)
    form = parser.add_mutually_exclusive_group()
    options.add_json(form)
    options.add_markdown(form, "a CI job page")


def main(given: Options) -> Result:
    from harness.nightly.suite import check_day
    from harness.report.findings.changed_then import with_changes
    from harness.report.findings.series_words import too_few_runs
    from harness.report.text import trends
    from harness.store.history import history_path, read_history
    from harness.verdicts.history import drifts, from_day, series

    if given.since:
        check_day(given.since, "--since")
    path = history_path(given.out)
    added = _add_runs(given, path)
    history = read_history(path)
    if not history:
        adds = "`bench history RUN` adds one; --out names the folder of the runs"
        hint = "" if given.runs else adds
        raise SpecError("no run in the history", where=str(path), hint=hint)
    courses, runs = from_day(series(history), given.since), {entry.run for entry in history}
    if given.since > max(entry.created_utc[:10] for entry in history):
        raise SpecError("is later than every run in the history", where=f"--since {given.since}")
    regressions = with_changes(drifts(courses, given.floor / 100), given.out)
    judged = added or runs
    failed = bool(given.fail_on) and any(drift.series.has_any(judged) for drift in regressions)
    few = ""
    if given.fail_on:
        mine = [course for course in courses if course.has_any(judged)]
        few = too_few_runs(mine) if mine or not added else "no figure above 0 of these runs is in it"
        days = [entry.created_utc[:10] for entry in history if entry.run in added]
        if days and given.since > max(days):
            few = f"these runs are of before {given.since}, the day of --since"
    return Result(
        lambda screen: (
            trends.markdown(courses, regressions)
            if given.markdown
            else trends.terminal(courses, regressions, screen.width)
        ),
        lambda: {"runs": len(runs), "drifts": [drift.as_json() for drift in regressions]},
        ExitCode.LIMIT_FAILED if failed else ExitCode.OK,
        [f"warning: --fail-on {given.fail_on} has nothing to judge: {few}"] if few else (),
    )


def _add_runs(given: Options, path: Path) -> set[str]:
    """Adds the runs that are given to the history, and returns their names."""
    from harness.store import open_run
    from harness.store.derived import computed_once
    from harness.store.history import append_history

    added, new, notes = set(), list[HistoryEntry](), list[str]()
    try:
        with closing(progress_display()) as ui:
            for number, name in enumerate(given.runs, 1):
                if len(given.runs) > 1:
                    ui.stage(f"reading the runs ({number} of {len(given.runs)})")
                folder = open_run(name, given.out)
                found = computed_once(folder.files, _Added, partial(_added, folder))
                new += found.lines
                added.add(found.run)
                notes += [f"warning: {plain(why)}" for why in found.not_kept]
    finally:  # all at once, for the whole history is read each time; what came before a damaged run stays
        if new:
            append_history(path, new)
        for note in notes:
            print_note(note)
    return added


def _added(folder: "RunFolder") -> _Added:
    """Computed from the records. Raises SpecError for a run that lacks a damaged cell."""
    from harness.summary import summarise_folder
    from harness.validity.notices import left_out
    from harness.verdicts.history_lines import entries, not_kept

    summary = summarise_folder(folder)
    for warning in left_out(summary.warnings):
        raise SpecError(f"not added: {warning.text}", where=str(folder.path), hint=warning.hint)
    lines = tuple(entries(folder.read_manifest(), summary))
    return _Added(run=summary.run, lines=lines, not_kept=tuple(not_kept(summary)))
