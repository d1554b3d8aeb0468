"""A run as another tool would report it: each figure next to the one here, and why they differ."""

from collections.abc import Iterator, Mapping, Sequence

from harness.metrics.peers import Tool
from harness.model import Summary
from harness.model.grouping import grouped
from harness.report.blocks.block import Block, Gap, Line, Section, Title, Verbatim
from harness.report.findings.notes import banner
from harness.report.tables.peer_figures import Pair, Views, pairs
from harness.report.text import terminal_text
from harness.report.view import groups, point_words
from harness.report.wording import NOT_KNOWN, listing, or_unknown, plain, short_names

GAP = 2
LABEL_LIMIT = 40


def terminal(summary: Summary, tool: Tool, views: Views, width: int) -> str:
    return terminal_text.terminal(_document(summary, tool, views, width), width, color=False) + "\n"


def _document(summary: Summary, tool: Tool, views: Views, width: int) -> Iterator[Block]:
    title = f"{summary.scenario}: the same records as {tool.title} would have reported them"
    yield Title(plain(title), banner(summary))
    shown: list[Pair] = []
    for group in groups(summary):
        by_label = {row.label: pairs(row, views) for row in group.rows}
        shown += (pair for row in by_label.values() for pair in row)
        yield from (Gap(), Line(point_words(group.point)))
        if any(by_label.values()):
            found = {label: row for label, row in by_label.items() if row}
            yield Verbatim("\n".join(_columns(found, tool, width)))
        else:
            usable = any(row.usable for row in group.rows)
            why = "no answer has text, whose times are compared" if usable else "nothing valid was measured"
            yield Line(why)
    differing = {pair.measure for pair in shown if pair.differs}
    reasons = [Line(f"{measure}: {why}") for measure, why in tool.why.items() if measure in differing]
    compared = any(pair.here is not None and pair.there is not None for pair in shown)
    if compared and reasons:
        yield Section("Why they differ by more than 1%:", reasons)
    else:
        nothing = "Nothing differs by more than 1%."
        yield from (Gap(), Line(nothing if compared else "No figure is known of both: nothing was compared."))
    beyond = dict.fromkeys(line for view in views.values() for line in view.beyond)
    yield from (Line(plain(line, 600)) for line in (*_unlike(tool, shown), *beyond))
    yield from map(Line, _evidence(summary, views))


def _columns(by_label: Mapping[str, Sequence[Pair]], tool: Tool, width: int) -> Iterator[str]:
    """Two columns per backend; as many backends next to each other as fit."""
    names = [pair.name for pair in next(iter(by_label.values()))]
    first, labels = max(map(len, names)), list(by_label)
    cut = short_names(by_label, min(LABEL_LIMIT, width - first - GAP))
    longest = max(map(len, cut.values())) + GAP
    column = max(8 + GAP, len(tool.name) + GAP, -(-longest // 2))
    fit = max(1, (width - first) // (2 * column))
    for start in range(0, len(labels), fit):
        shown = labels[start : start + fit]
        yield " " * first + "".join(cut[label].rjust(2 * column) for label in shown)
        yield " " * first + f"{'here':>{column}}{tool.name:>{column}}" * len(shown)
        for index, name in enumerate(names):
            cells = [by_label[label][index] for label in shown]
            yield name.ljust(first) + "".join(
                f"{or_unknown(cell.here):>{column}}{or_unknown(cell.there):>{column}}" for cell in cells
            )


def _unlike(tool: Tool, shown: Sequence[Pair]) -> Iterator[str]:
    """Figures here that are over all repeats together, and those that only the tool has, with the reason."""
    if pooled := dict.fromkeys(pair.title for pair in shown if pair.pooled and pair.there is not None):
        yield (
            f"pooled here, {listing(list(pooled))}: over the requests of all repeats, since one is too short "
            f"for it; of {tool.name} the median of the repeats."
        )
    theirs = (pair for pair in shown if pair.here is None and pair.there is not None)
    for why, titles in grouped((pair.why_unknown, pair.title) for pair in theirs).items():
        names = listing([*dict.fromkeys(titles)])
        yield f"{NOT_KNOWN} here, {names}: {why}; {tool.name} prints it all the same."


def _evidence(summary: Summary, views: Views) -> Iterator[str]:
    """Uses one cell per backend, at the highest load: the causes are the server's, not the load's."""
    for group in groups(summary)[-1:]:
        for row in group.rows:
            view = next((views[cell.cell] for cell in row.usable if cell.cell in views), None)
            if view and view.evidence:
                facts = "; ".join(f"{cause} {text}" for cause, text in view.evidence.items())
                yield plain(f"{row.label}, {point_words(group.point)}: {facts}", 1000)


def as_json(summary: Summary, tool: Tool, views: Views) -> dict[str, object]:
    cells = [
        {
            "load": {"kind": group.point.kind, "value": group.point.value},
            "label": row.label,
            "figures": [
                {
                    "name": pair.name,
                    "here": pair.here,
                    "there": pair.there,
                    "pooled": pair.pooled,
                    "null_reason": pair.why_unknown or None,
                }
                for pair in pairs(row, views)
            ],
        }
        for group in groups(summary)
        for row in group.rows
    ]
    return {
        "run": summary.run,
        "simulated": summary.simulated,
        "tool": tool.title,
        "why": dict(tool.why),
        "cells": cells,
    }
