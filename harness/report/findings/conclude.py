"""The whole conclusion of a run, from which terminal, pages, JSON and Python say what they say."""

from collections.abc import Iterator

from harness.model import Conclusion, Manifest, Summary, Warned
from harness.report.findings.conclusion import goodput, orders, under_load
from harness.report.findings.next_steps import next_steps
from harness.report.findings.notes import most_important
from harness.report.findings.verdict_words import unequal_in_short
from harness.report.view import groups
from harness.verdicts.ranking import caveats_of

WARNINGS = 3  # that a first screen has


def conclude(summary: Summary, manifest: Manifest | None = None) -> Conclusion:
    """`manifest`: has the command, of which the next steps are made; None: not known."""
    courses = tuple(under_load(summary))
    first = summary.verdict_rules.primary
    return Conclusion(
        orders=tuple(element for group in groups(summary) for element in orders(summary, group)),
        under_load=courses,
        undecided=sum(
            entry.verdict == "not enough runs" for entry in summary.comparison if entry.metric == first
        ),
        unequal=tuple(element for element in summary.unequal if element.matters or element.apart),
        caveats=caveats_of(summary.cells),
        goodput=tuple(element for group in groups(summary) if (element := goodput(group))),
        warnings=tuple(_warnings(summary)),
        next_steps=tuple(next_steps(summary, courses, manifest)),
    )


def _warnings(summary: Summary) -> Iterator[Warned]:
    yield from (Warned(text=line, hint="") for line in unequal_in_short(summary))
    yield from (Warned(text=note.short or note.text, hint=note.hint) for note in most_important(summary))
