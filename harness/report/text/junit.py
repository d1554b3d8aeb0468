"""Outcome of a gate as JUnit XML, which GitLab, Jenkins, Azure Pipelines and others show as tests."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from harness.model import GateKind, GateRow, RunComparison
from harness.model.measures import measure
from harness.report.findings.against import place_words
from harness.report.wording import plain
from harness.verdicts.accuracy import drops

_MOST = 2000  # characters of a name or a reason


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    kind: GateKind | None = None  # of the row that it failed on; None: it passed
    why: str = ""


def compared_cases(document: RunComparison, *, speed: bool) -> Iterator[Case]:
    """Yields a case for each row of the gate, and for all else that it passed. `speed`: it looks at more than
    the answers. Rows about a figure have the name that the figure has where it passes.
    """
    passed = [*_figures(document)] if speed else []
    answers = [*_answers(document)]
    answered = [row for _run, _case, row in answers]
    rows = [(row.run, _row_case(row)) for row in document.gate if row not in answered]
    found = [*passed, *((run, case) for run, case, _row in answers), *rows]
    several = len({run for run, _case in found}) > 1
    for run, case in found:
        yield replace(case, name=f"{run}: {case.name}") if several else case


def _figures(document: RunComparison) -> Iterator[tuple[str, Case]]:
    """Yields what passed, with its run. Of a search it is the capacity: its loads were tried by chance."""
    failed = {(row.run, row.label, row.load, row.metric) for row in document.gate}
    for pair in document.pairs:
        run, label = pair.a.run, pair.a.label
        if pair.capacity is not None and (run, label, None, None) not in failed:
            yield run, Case(f"{label} capacity")
        for figure in pair.findings if pair.capacity is None else ():
            about = (run, label, figure.load, figure.metric)
            if about not in failed and figure.verdict != "not comparable":
                yield run, Case(f"{label} {figure.load.label} {measure(figure.metric).name}")


def _answers(document: RunComparison) -> Iterator[tuple[str, Case, GateRow | None]]:
    """Yields what became of the answers to questions in each condition, with its run and its row."""
    for each in document.accuracy:
        row = next((row for row in drops([each]) if row in document.gate), None)
        name = f"{each.a.label} answers {'under load' if each.under_load else 'one at a time'}"
        if row:
            yield each.a.run, Case(name, row.kind, row.why), row
        elif each.change:
            yield each.a.run, Case(name), None


def _row_case(row: GateRow) -> Case:
    about = place_words(row).removesuffix(f": {row.why}")
    return Case(about if row.metric else f"{about} {row.kind}", row.kind, row.why)


def junit(suite: str, cases: Iterable[Case], accepted: Iterable[GateKind] = ()) -> str:
    """The whole file. Rows of the kinds `accepted` are skipped tests and fail nothing."""
    listed, passes = list(cases), set(accepted)
    failures = sum(case.kind is not None and case.kind not in passes for case in listed)
    skipped = sum(case.kind in passes for case in listed)
    counts = {"tests": len(listed), "failures": failures, "errors": 0, "skipped": skipped}
    # No attributes of the root: Jenkins's schema knows fewer of them there.
    root, name = ElementTree.Element("testsuites"), plain(suite, _MOST)
    attributes = {"name": name, **{key: str(count) for key, count in counts.items()}}
    element = ElementTree.SubElement(root, "testsuite", attributes)
    for case in listed:
        about = {"classname": name, "name": plain(case.name, _MOST)}
        test = ElementTree.SubElement(element, "testcase", about)
        if case.kind is not None:
            why = plain(f"{case.kind}: {case.why}", _MOST)
            tag = "skipped" if case.kind in passes else "failure"
            ElementTree.SubElement(test, tag, {"message": why, "type": case.kind}).text = why
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"
