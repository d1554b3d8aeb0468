"""Claims of others next to what was measured, as lines of text."""

from collections.abc import Iterable, Iterator, Sequence

from harness.metrics.peers import changed
from harness.model import ClaimResult
from harness.model.lines import wrap
from harness.report.findings.claim_words import by_verdict, conditions, counts, here, measured, stated
from harness.report.wording import plain


def terminal(entries: Sequence[ClaimResult], width: int) -> str:
    return "\n".join(_lines(entries, width)) + "\n"


def _lines(entries: Sequence[ClaimResult], width: int) -> Iterator[str]:
    yield from wrap(counts(entries), width)
    if differences := here(entries):
        yield from wrap(f"Here: {'; '.join(differences)}.", width, subsequent_indent="  ")
    for word, mine in by_verdict(entries).items():
        yield ""
        yield word
        for entry in mine:
            yield from _entry(entry, width)
    yield from by_version((entry.measure for entry in entries), width)


def _entry(entry: ClaimResult, width: int) -> Iterator[str]:
    def wrapped(text: str) -> list[str]:
        return wrap(plain(text, 1000), width, initial_indent=" " * 10, subsequent_indent=" " * 12)

    yield from wrap(f"  {entry.id:<7} {entry.says}", width, subsequent_indent=" " * 10)
    for finding in entry.found:
        yield from wrapped(
            f"{finding.load.label} {finding.about} {entry.measure}: stated {stated(finding, entry.kind)}, "
            f"measured {measured(finding, entry.kind)}"
        )
    yield from wrapped(entry.why)
    for text in conditions(entry):
        yield from wrapped(text)


def by_version(measures: Iterable[str], width: int) -> Iterator[str]:
    """Meanings that depend on the version of the tool that measured."""
    known = list(changed(dict.fromkeys(measure.partition(".")[0] for measure in measures)))
    if not known:
        return
    yield ""
    yield from wrap(
        "The sources name no version of the tool that measured, and a figure may depend on it "
        "(`bench report RUN --as vllm@0.33`):",
        width,
    )
    for metric, tool, meaning in known:
        text = f"{metric}, {tool}: {meaning}"
        yield from wrap(text, width, initial_indent="  ", subsequent_indent="    ")
