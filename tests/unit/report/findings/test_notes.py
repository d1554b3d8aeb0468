"""Notes next to the numbers."""

from harness.model import CellResult
from harness.report.findings.notes import most_important, notes
from harness.report.text.screen import next_lines
from tests.factories.documents import made
from tests.factories.summaries import summary


def about_fields(**backends):
    """Notes on request fields of a run of these labels, by the definition of each."""
    conditions = {"sent_fields": {"stream": True, "top_k": 20}, "own_fields": {"top_k": 20}}
    load = {"kind": "concurrency", "value": 4}
    cells = [
        made(CellResult, label=label, backend=backend, load=load, conditions=conditions)
        for label, backend in backends.items()
    ]
    return [note.text for note in notes(summary(*cells)) if "were sent" in note.text]


def test_fields_that_engines_of_two_kinds_were_sent_may_be_ignored_by_some():
    assert about_fields(vllm="vllm", other="llamacpp") == [
        'vllm and other were sent {"top_k": 20}: an engine that does not know a field may ignore it'
    ]
    assert about_fields(old="vllm", new="vllm") == []


def test_worthless_answers_of_one_engine_come_before_doubts_about_the_times_of_all():
    """With many doubts the first screen has the first two."""
    busy = {
        "verdict": "SUSPECT",
        "code": "contended",
        "measured": "1.9 of 2 cores",
        "limit": "10%",
        "hint": "x",
    }
    errors = busy | {"code": "errors-as-answers", "measured": "3 of 64 answers"}
    cells = [
        made(CellResult, label=label, backend=label, validity={"verdict": "SUSPECT", "reasons": reasons})
        for label, reasons in (("a", [busy]), ("b", [busy, errors]))
    ]
    run = summary(*cells)
    assert [note.code for note in most_important(run)] == ["errors-as-answers", "contended"]
    assert "1 of 2 cells is SUSPECT, errors-as-answers" in " ".join(" ".join(next_lines(run, 100)).split())
