"""The first screen of a run: its findings, one table, what is wrong with it, and what to do next."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.model import Manifest, Summary
from harness.model.lines import shell_lines
from harness.model.numbers import counted
from harness.report.blocks.block import Block, Figures, Gap, Line, Title, Verbatim
from harness.report.blocks.run import verdict
from harness.report.findings.backend_words import marked_names
from harness.report.findings.conclude import WARNINGS, conclude
from harness.report.findings.grid import GAP, Column, fitting
from harness.report.findings.next_steps import reason_and_time
from harness.report.findings.notes import banner, odd_tracks, prices
from harness.report.findings.sentences import load_words
from harness.report.tables.sessions import session_tables
from harness.report.tables.subject import subject_tables
from harness.report.text.terminal_text import hanging, terminal
from harness.report.view import asked_words, first_cells, groups, labels, repeats_words
from harness.report.wording import listing, plain

NAMED = 3  # backends that the headline names
LABEL = 40
Sketch = Callable[[Summary, int], str]  # of a width: pictures between the table and its conclusion


def screen(summary: Summary, columns: int, color: bool, sketch: Sketch | None = None) -> str:
    """Fits `columns` from 60 on. With `sketch`: the table first, then it, then the conclusion."""
    table, conclusion = list(_table(summary, columns)), list(verdict(summary))
    middle: list[Block] = [*conclusion, Gap(), *table]
    if sketch is not None:
        drawn = sketch(summary, columns)
        middle = [*table, Gap(), *((Verbatim(drawn), Gap()) if drawn else ()), *conclusion]
    head = Title(headline(summary), banner(summary)), Gap()
    return terminal([*head, *middle, *_warnings(summary)], columns, color).rstrip() + "\n"


def headline(summary: Summary) -> str:
    """`batch-1-8-32, SmolLM2: vllm and llamacpp, 3 repeats each; prompts of 512 tokens`."""
    names = labels(summary)
    who = listing(names) if len(names) <= NAMED else counted(len(names), "backend")
    model = f", {summary.model.title}" if summary.model else ""
    each = " each" if len(names) > 1 else ""
    what = f"{who}, {repeats_words(summary)}{each}" if names else "nothing measured"
    asked = asked_words(summary)
    return plain(f"{summary.scenario}{model}: {what}{f'; {asked}' if asked else ''}")


def _table(summary: Summary, columns: int) -> Iterator[Block]:
    """A row per load and backend, in the columns that fit."""
    by_load = groups(summary)
    if not by_load:
        return
    marked = marked_names(summary, min(LABEL, columns // 3))
    names: list[tuple[str, ...]] = [("load", "backend")]
    rows = []
    for group in by_load:
        for index, row in enumerate(group.rows):
            names.append(("" if index else load_words(group.point), marked[row.label]))
            rows.append(row)
    if len(marked) == 1:
        names = [name[:1] for name in names]
    used = sum(GAP + max(map(len, column)) for column in zip(*names, strict=True)) - GAP
    kept, left_out = fitting(rows, columns - used, summary.verdict_rules.metrics)
    yield Figures(
        "", names, [(column, [replace(column.entry(row), spread="") for row in rows]) for column in kept]
    )
    yield from (Line(line, "muted") for line in _below_table(summary, left_out))
    yield from (*subject_tables(summary), *session_tables(summary))


def _below_table(summary: Summary, left_out: Sequence[Column]) -> Iterator[str]:
    yield _weights(summary)
    names = [column.title for column in left_out if column.title != "errors"]
    clean = "No request failed. " if len(names) < len(left_out) else ""
    others = f"Not shown: {', '.join(names)} (-v, or a wider terminal)." if names else ""
    yield f"{clean}{others}"
    yield from prices(summary)
    if summary.agreement and summary.agreement.values:
        yield summary.agreement.values.words


def _weights(summary: Summary) -> str:
    """The meaning of the `*` of a name; "" without one."""
    odd = odd_tracks(summary)
    if not odd:
        return ""
    weights: dict[bool, dict[str, None]] = {True: {}, False: {}}  # by whether they are starred
    for label, cell in first_cells(summary).items():
        weights[label in odd][cell.quantisation or cell.track or "unknown"] = None
    starred, others = (listing(list(weights[key])) for key in (True, False))
    return plain(f"* weights {starred}, the others {others}: a difference may be theirs")


def _warnings(summary: Summary) -> Iterator[Block]:
    found = conclude(summary).warnings
    yield Gap()
    for warned in found[:WARNINGS]:
        yield Line(warned.text, "warning", "warning", warned.hint)
    if len(found) > WARNINGS:
        yield Line(f"{counted(len(found) - WARNINGS, 'more warning')}: -v, or the report")


def next_lines(
    summary: Summary, columns: int, run: str | None = None, manifest: Manifest | None = None
) -> Iterator[str]:
    """What to run next, and why. `run`: the path of the folder, if it is known.

    A command has lines of its own, which a shell reads as one.
    """
    for number, step in enumerate(conclude(summary, manifest).next_steps):
        words = f"{reason_and_time(step)}:{'' if step.is_command else f' {step.do}'}"
        yield from hanging("also:       " if number else "next:       ", words, columns, cut=False)
        if step.is_command:
            typed = shlex.split(step.do)
            known = {plain(summary.run): run or plain(summary.run)}
            if run and typed[1] == "compare":  # the latest of that folder, whatever --out is by then
                known["latest"] = str(Path(run).parent / "latest")
            yield from shell_lines([known.get(word, word) for word in typed], columns, " ")
