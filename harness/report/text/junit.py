"""Outcome of a gate as JUnit XML, which GitLab, Jenkins, Azure Pipelines and others show as tests."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from xml.etree import ElementTree

from harness.model import GateKind, GateRow, RunComparison
from harness.model.grouping import grouped
from harness.model.measures import measure
from harness.report.findings.against import place_words
from harness.report.wording import plain

_MOST = 2000  # characters of a name or a reason


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    kind: GateKind | None = None  # of the row that it failed on; None: it passed
    why: str = ""


def compared_cases(document: RunComparison) -> Iterator[Case]:
    """Yields a case for each figure that was compared, then one for each other row of the gate."""
    rows = grouped(((row.run, row.label, row.load, row.metric), row) for row in document.gate)
    several = len({pair.a.run for pair in document.pairs}) > 1
    for pair in document.pairs:
        run = f"{pair.a.run}: " if several else ""
        for figure in pair.findings:
            name = f"{run}{pair.a.label} {figure.load.label} {measure(figure.metric).name}"
            found = rows.pop((pair.a.run, pair.a.label, figure.load, figure.metric), ())
            yield from [Case(name, row.kind, row.why) for row in found] or [Case(name)]
    yield from map(row_case, chain.from_iterable(rows.values()))


def row_case(row: GateRow) -> Case:
    """The case of a row that is about no single figure."""
    about = place_words(row).removesuffix(f": {row.why}")
    return Case(f"{about} {row.kind}", row.kind, row.why)


def junit(suite: str, cases: Iterable[Case], accepted: Iterable[GateKind] = ()) -> str:
    """The whole file. Rows of the kinds `accepted` are skipped tests and fail nothing."""
    listed, passes = list(cases), set(accepted)
    failures = sum(case.kind is not None and case.kind not in passes for case in listed)
    skipped = sum(case.kind in passes for case in listed)
    counts = {"tests": len(listed), "failures": failures, "errors": 0, "skipped": skipped}
    attributes = {"name": plain(suite, _MOST), **{key: str(count) for key, count in counts.items()}}
    root = ElementTree.Element("testsuites", attributes)
    element = ElementTree.SubElement(root, "testsuite", attributes)
    for case in listed:
        about = {"classname": plain(suite, _MOST), "name": plain(case.name, _MOST)}
        test = ElementTree.SubElement(element, "testcase", about)
        if case.kind is not None:
            why = plain(f"{case.kind}: {case.why}", _MOST)
            tag = "skipped" if case.kind in passes else "failure"
            ElementTree.SubElement(test, tag, {"message": why, "type": case.kind}).text = why
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"
