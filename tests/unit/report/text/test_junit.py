"""A gate as JUnit XML: every case is there once, and counts and kinds are what a CI server reads."""

from xml.etree import ElementTree

from msgspec import structs
from msgspec.structs import replace

from harness.model import GateRow, LoadPoint
from harness.report.text.junit import Case, compared_cases, junit
from harness.verdicts.accuracy import drops
from harness.verdicts.baseline import compare_runs
from harness.verdicts.capacity_pairs import capacity_pair
from tests.factories.documents import made
from tests.unit.verdicts.test_accuracy import ALL, SOME_LOST, agreement
from tests.unit.verdicts.test_accuracy import rows as compared_answers
from tests.unit.verdicts.test_baseline import run
from tests.unit.verdicts.test_capacity_pairs import FAST, SLOW
from tests.unit.verdicts.test_pairs import NOISE, cells


def read(text):
    """The counts of the file, and (name, tag, type) of each test."""
    root = ElementTree.fromstring(text)
    (suite,) = root
    assert not root.attrib
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


OLD, NEW = run("old", cells("vllm", 100)), run("new", cells("vllm", 130, noise=-NOISE, repeats=4))


def failures(document, *, speed=True):
    """Names and kinds of what failed, and the names of what passed."""
    cases = [*compared_cases(document, speed=speed)]
    assert len({case.name for case in cases}) == len(cases)
    return {(case.name, case.kind) for case in cases if case.kind}, {
        case.name for case in cases if not case.kind
    }


def test_each_compared_figure_is_a_test_and_so_is_each_other_row():
    document = compare_runs([OLD, NEW])
    figures = [figure for pair in document.pairs for figure in pair.findings]
    failed, passed = failures(document)
    assert len(failed) + len(passed) == len(figures) + 1
    assert failed >= {("vllm c4 TTFT p50", "slower"), ("vllm c4 missing", "missing")}
    assert len(failed) == len(document.gate)


def test_each_row_of_one_load_is_a_test_of_its_own():
    document = compare_runs([run("old", cells("vllm", 100)), run("new", cells("vllm", 130, noise=-NOISE))])
    place = GateRow(
        kind="failures", run="new", label="vllm", load=LoadPoint("concurrency", 4), metric=None, why="3 of 8"
    )
    rows = [place, structs.replace(place, kind="stalls"), structs.replace(place, kind="not compared")]
    found = [*compared_cases(structs.replace(document, gate=(*document.gate, *rows)), speed=True)]
    assert [case.name for case in found[-3:]] == [
        "vllm c4 failures",
        "vllm c4 stalls",
        "vllm c4 not compared",
    ]
    assert sum(case.kind is not None for case in found) == len(document.gate) + 3


def row(kind, load=None, metric=None, why="as it is"):
    about = {"kind": kind, "run": "new", "label": "vllm", "metric": metric, "why": why}
    return made(GateRow, about | ({"load": {"kind": "concurrency", "value": load}} if load else {}))


def test_an_accepted_row_stands_for_no_other_one_of_its_load():
    gate = (row("failures", 4), row("undecided", 4))
    document = replace(compare_runs([OLD, NEW]), gate=gate)
    counts, _ = read(junit("x", compared_cases(document, speed=True), ["undecided"]))
    assert (counts["failures"], counts["skipped"]) == (1, 1)


def test_what_was_not_compared_has_not_passed():
    (pair,) = (document := compare_runs([OLD, NEW])).pairs
    figures = tuple(replace(figure, verdict="not comparable") for figure in pair.findings)
    refused = replace(document, pairs=(replace(pair, findings=figures),), gate=(row("not compared", 4),))
    assert failures(refused) == ({("vllm c4 not compared", "not compared")}, set())


def test_a_search_has_its_capacity_alone_as_a_test():
    """Its loads were tried by chance."""
    (pair,) = (document := compare_runs([OLD, NEW])).pairs
    searched = replace(document, pairs=(replace(pair, capacity=capacity_pair(FAST, SLOW, None)),), gate=())
    assert failures(searched) == (set(), {"vllm capacity"})
    assert failures(replace(searched, gate=(row("slower"),))) == ({("vllm slower", "slower")}, set())


def test_a_gate_on_answers_shows_answers_alone():
    """Figures that it does not look at have neither passed nor failed."""
    answers = tuple(compared_answers(agreement(ALL, SOME_LOST), agreement(ALL)))
    lost = tuple(drops(answers))
    document = replace(compare_runs([OLD, NEW]), accuracy=answers, gate=lost)
    passed, failed = "engine answers one at a time", ("engine answers under load", "accuracy")
    assert failures(document, speed=False) == ({failed}, {passed})
    assert failures(replace(document, gate=()), speed=False) == (set(), {passed, failed[0]})
