"""The first lines wherever a run is printed: its verdict, load by load."""

from collections.abc import Iterator, Sequence

from harness.model import Summary
from harness.model.lines import wrap
from harness.report.findings.accuracy_words import accuracy_lines
from harness.report.findings.backend_words import caveats
from harness.report.findings.capacity_words import capacity_lines
from harness.report.findings.conclusion import speedup
from harness.report.findings.notes import no_verdict
from harness.report.findings.sentences import BEYOND, GOODPUT, IN_DOUBT, Claim, claims, load_words, under_load
from harness.report.findings.stopping import pairing_lines
from harness.report.findings.verdict_words import confidence, knee_lines, noise_lines, runs
from harness.report.text.terminal_text import DIM, YELLOW, Paint, hanging
from harness.report.view import groups, labels, leading
from harness.report.wording import markdown_escaped
from harness.verdicts.rules import ONE_START


def first_lines(summary: Summary, columns: int, paint: Paint, below: Sequence[str] = ()) -> Iterator[str]:
    """The verdict: of a capacity search, of each load, and the meaning of the figures in brackets, those of
    the verdicts `below` included."""
    for line in whole_run(summary):
        yield from wrap(line, columns, subsequent_indent="  ")
    yield from _loads(summary, columns, paint)
    for line in caveats(summary):
        yield from (paint(part, YELLOW) for part in wrap(line, columns, subsequent_indent="  "))
    for line in (intervals(summary, below), *pairing_lines(summary)):
        yield from (paint(part, DIM) for part in wrap(line, columns, subsequent_indent="  "))


def whole_run(summary: Summary) -> Iterator[str]:
    """What is not of one load: the capacity, one server under load, why there is no verdict."""
    yield from capacity_lines(summary)
    yield from knee_lines(summary)
    if len(labels(summary)) == 1:
        yield from under_load(summary)
    if line := no_verdict(summary):
        yield line
    yield from noise_lines(summary)
    yield from accuracy_lines(summary)


def of_loads(summary: Summary) -> list[tuple[str, list[Claim]]]:
    """The claims of each load, without verdicts if the run says them as a whole, or has none.

    Of a search for the capacity, those of the loads that are carried, without goodput: that is the capacity.
    """
    all_loads = groups(summary)
    course = len(labels(summary)) == 1 and (any(True for _ in under_load(summary)) or summary.knees)
    found = [
        (load_words(group.point), [
            claim for claim in claims(summary, group) if claim[0] != GOODPUT or not summary.capacity
        ])
        for group in (leading(summary, all_loads) if summary.capacity else all_loads)
    ]  # fmt: skip
    if not course and not no_verdict(summary):
        return found
    return [(load, [line for line in mine if line[0] in (*BEYOND, IN_DOUBT)]) for load, mine in found]


def intervals(summary: Summary, below: Sequence[str]) -> str:
    """The meaning of the figures in brackets; "" if neither a claim nor a line `below` has that of a pair."""
    texts = [*(text for _load, mine in of_loads(summary) for _name, text in mine), *below]
    pairs = [pair for entry in summary.comparison if (pair := speedup(entry)).times]
    shown = [pair for pair in pairs if any(pair.between in text for text in texts)]
    if not shown:
        return ""
    meaning = f"In brackets: {confidence(summary)} intervals of the geometric mean over {runs(summary)}."
    if any(pair.state == "undecided" and pair.times and pair.times.low > 1 for pair in shown):
        meaning += (
            " Undecided though 1× lies outside: the difference may be too small to count, or chance among so "
            "many comparisons."
        )
    if summary.verdict_rules.unit == ONE_START:
        meaning += " Noise that outlasts a run makes them too narrow; --pairing blocks allows for it."
    return meaning


def _loads(summary: Summary, columns: int, paint: Paint) -> Iterator[str]:
    """The claims of each load, its name before the first of them."""
    found = of_loads(summary)
    first = max((len(load) for load, _ in found), default=0) + 2
    second = max((len(name) for _, mine in found for name, _ in mine), default=0) + 2
    for load, mine in found:
        heads = [load, *[""] * len(mine)]
        for head, (name, text) in zip(heads, mine, strict=False):
            left = head.ljust(first) + (name.ljust(second) if name else "")
            lines = hanging(left, text, columns)
            yield from (paint(line, YELLOW) for line in lines) if name == IN_DOUBT else lines


def markdown_lines(summary: Summary, below: Sequence[str] = ()) -> Iterator[str]:
    """The same for a page: a list, with the claims of each load below its name."""
    for line in whole_run(summary):
        yield f"- {markdown_escaped(line)}"
    for load, mine in of_loads(summary):
        if not mine:
            continue
        yield f"- **{markdown_escaped(load)}**"
        for name, text in mine:
            yield f"  - {markdown_escaped(f'{name}: {text}' if name else text)}"
    for line in (*caveats(summary), intervals(summary, below), *pairing_lines(summary)):
        if line:
            yield f"- {markdown_escaped(line)}"
