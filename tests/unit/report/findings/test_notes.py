"""Notes next to the numbers."""

from harness.model import CellResult
from harness.report.findings.notes import notes
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
