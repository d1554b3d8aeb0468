"""A gate as JUnit XML: every case is there once, and counts and kinds are what a CI server reads."""

from xml.etree import ElementTree

from msgspec import structs

from harness.model import GateRow, LoadPoint
from harness.report.text.junit import Case, compared_cases, junit
from harness.verdicts.baseline import compare_runs
from tests.unit.verdicts.test_baseline import run
from tests.unit.verdicts.test_pairs import NOISE, cells


def read(text):
    """The counts of the file, and (name, tag, type) of each test."""
    root = ElementTree.fromstring(text)
    (suite,) = root
    assert suite.attrib == root.attrib
    rows = [(case, next(iter(case), None)) for case in suite]
    tests = [(case.get("name"), *((found.tag, found.get("type")) if found is not None else ("", "")))
             for case, found in rows]  # fmt: skip
    return {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}, tests


def test_a_case_passes_fails_or_is_accepted():
    cases = [Case("a"), Case("b", "slower", "by 5%"), Case("c", "undecided", "too few runs")]
    counts, tests = read(junit("chat", cases, ["undecided"]))
    assert counts == {"tests": 3, "failures": 1, "errors": 0, "skipped": 1}
    assert tests == [("a", "", ""), ("b", "failure", "slower"), ("c", "skipped", "undecided")]
    assert read(junit("chat", cases))[0]["failures"] == 2


def test_text_of_a_server_cannot_break_the_file():
    text = junit("a\x00<b>\ud800", [Case('x"]]>\x1b[31m', "failures", "<&\x07é" * 3)])
    (name, tag, _kind) = read(text.encode().decode())[1][0]
    assert tag == "failure"
    assert "\x1b" not in name


def test_each_compared_figure_is_a_test_and_so_is_each_other_row():
    old, new = run("old", cells("vllm", 100)), run("new", cells("vllm", 130, noise=-NOISE, repeats=4))
    document = compare_runs([old, new])
    cases = [*compared_cases(document)]
    figures = [figure for pair in document.pairs for figure in pair.findings]
    failed = {(case.name, case.kind) for case in cases if case.kind}
    assert len(cases) == len(figures) + 1
    assert {case.name for case in cases} >= {"vllm c4 TTFT p50", "vllm c4 missing"}
    assert ("vllm c4 TTFT p50", "slower") in failed
    assert ("vllm c4 missing", "missing") in failed
    assert len(failed) == len(document.gate)


def test_each_row_of_one_load_is_a_test_of_its_own():
    document = compare_runs([run("old", cells("vllm", 100)), run("new", cells("vllm", 130, noise=-NOISE))])
    place = GateRow(
        kind="failures", run="new", label="vllm", load=LoadPoint("concurrency", 4), metric=None, why="3 of 8"
    )
    rows = [place, structs.replace(place, kind="stalls"), structs.replace(place, kind="not compared")]
    found = [*compared_cases(structs.replace(document, gate=(*document.gate, *rows)))]
    assert [case.name for case in found[-3:]] == [
        "vllm c4 failures",
        "vllm c4 stalls",
        "vllm c4 not compared",
    ]
    assert sum(case.kind is not None for case in found) == len(document.gate) + 3
