"""What to run next: what would remove a doubt, and what would decide a pair."""

import shlex
from collections.abc import Iterator, Sequence
from statistics import median_high

from harness.model import Manifest, PairVerdict, Summary
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, tag
from harness.report.html.trust import doubts_by_code
from harness.report.measures import measure
from harness.report.next_steps import repeats_needed
from harness.report.text import counted, plain
from harness.report.view import groups

MOST_HINTS = 2


def next_steps(source: Source) -> Iterator[Html]:
    if not source.summary.cells:
        return
    decide, hints = list(_decide(source.summary, source.manifest)), list(_hints(source.summary))
    undecided = any(entry.verdict == "not enough runs" for entry in source.summary.comparison)
    lines: list[str] = [*decide, *hints] if undecided else [*hints, *decide]
    yield tag("div", tag("h3", "What to run next"), items(lines), class_="small")


def _hints(summary: Summary) -> Iterator[str]:
    """Against what doubts most cells, INVALID before SUSPECT; then against warnings about the whole run."""
    of_cells = [
        f"{reason.code} ({counted(len(cells), 'cell')}): {reason.hint}"
        for reason, cells in doubts_by_code(summary)
        if reason.hint
    ]
    of_run = [f"{warning.code}: {warning.hint}" for warning in summary.warnings if warning.hint]
    yield from (plain(text, 160) for text in list(dict.fromkeys([*of_cells, *of_run]))[:MOST_HINTS])


def _decide(summary: Summary, manifest: Manifest | None) -> Iterator[Html]:
    undecided = [entry for entry in summary.comparison if entry.verdict == "not enough runs"]
    primary = [entry for entry in undecided if entry.primary]
    if wanted := primary or undecided:
        yield join([_undecided(summary, wanted), *_command(manifest, "--repeats", _repeats(wanted))])
        return
    closed = [group.point.value for group in groups(summary) if group.point.kind == "concurrency"]
    if closed:
        said = "More users show where throughput ends" if len(set(_labels(summary))) < 2 else (
            "Nothing compared here is left undecided; other loads may have another order"
        )  # fmt: skip
        loads = ",".join(f"{value:g}" for value in (*closed, 2 * closed[-1]))
        yield join([said, *_command(manifest, "--concurrency", loads)])


def _labels(summary: Summary) -> Iterator[str]:
    return (cell.label for cell in summary.cells)


def _undecided(summary: Summary, wanted: Sequence[PairVerdict]) -> str:
    """How many comparisons are open, and how many repeats would decide how many of them."""
    metrics = list(dict.fromkeys(measure(entry.metric).name for entry in wanted))
    total = sum(entry.metric in {one.metric for one in wanted} for entry in summary.comparison)
    said = f"{', '.join(metrics)}: {len(wanted)} of {counted(total, 'comparison')} undecided."
    needed = repeats_needed(wanted)
    if not needed:
        return f"{said} More repeats would hardly decide {'it' if len(wanted) == 1 else 'them'}."
    repeats = median_high(needed)
    decided = sum(one <= repeats for one in needed)
    return f"{said} About {repeats} repeats would decide {'it' if len(wanted) == 1 else f'{decided} of them'}"


def _repeats(wanted: Sequence[PairVerdict]) -> str:
    needed = repeats_needed(wanted)
    return str(median_high(needed)) if needed else ""


def _command(manifest: Manifest | None, flag: str, value: str) -> Iterator[Html]:
    """The command of this run with another value of one flag; nothing where the command is not known."""
    command = list(manifest.command or ()) if manifest else []
    if not value or command[1:2] != ["run"]:
        return
    gone = (flag, "--max-repeats") if flag == "--repeats" else (flag,)
    kept = [
        part
        for index, part in enumerate(command)
        if part.partition("=")[0] not in gone and command[index - 1] not in gone
    ]
    yield Html(": ")
    yield tag("code", plain(shlex.join([*kept, flag, value]), 400))
