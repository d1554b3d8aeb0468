"""What to run next: what would remove a doubt, and what would decide a pair."""

import shlex
from collections.abc import Iterator

from harness.model import Manifest, Summary
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, tag
from harness.report.html.trust import doubts_by_code
from harness.report.next_steps import Undecided, undecided
from harness.report.text import counted, plain
from harness.report.view import groups, labels

MOST_HINTS = 2


def next_steps(source: Source) -> Iterator[Html]:
    if not source.summary.cells:
        return
    waiting, hints = undecided(source.summary), list(_hints(source.summary))
    decide = list(_decide(source.summary, source.manifest, waiting))
    lines: list[str] = [*decide, *hints] if waiting else [*hints, *decide]
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


def _decide(summary: Summary, manifest: Manifest | None, waiting: Undecided | None) -> Iterator[Html]:
    if waiting:
        yield join([_undecided(waiting), *_command(manifest, "--repeats", str(waiting.repeats or ""))])
        return
    closed = [group.point.value for group in groups(summary) if group.point.kind == "concurrency"]
    if closed:
        said = "More users show where throughput ends" if len(labels(summary)) < 2 else (
            "Nothing compared here is left undecided; other loads may have another order"
        )  # fmt: skip
        loads = ",".join(f"{value:g}" for value in (*closed, 2 * closed[-1]))
        yield join([said, *_command(manifest, "--concurrency", loads)])


def _undecided(waiting: Undecided) -> str:
    """How many comparisons are open, and how many repeats would decide how many of them."""
    said = f"{', '.join(waiting.names)}: {waiting.pairs} of {counted(waiting.total, 'comparison')} undecided."
    alone = waiting.pairs == 1
    if waiting.repeats is None:
        return f"{said} More repeats would hardly decide {'it' if alone else 'them'}."
    decided = sum(one <= waiting.repeats for one in waiting.needed)
    return f"{said} About {waiting.repeats} repeats would decide {'it' if alone else f'{decided} of them'}"


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
