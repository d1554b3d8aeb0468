"""Warnings of a run, as its summary has them."""

from harness.model import UNSET, Failure, RunWarning
from harness.summary import summarise_folder
from tests.factories.documents import changed
from tests.factories.runs import SMALL, make_run


def test_a_warning_of_an_older_manifest_names_the_backend_that_failed(tmp_path):
    run = make_run(tmp_path, SMALL)
    failures = [("vllm", "vllm: no port"), ("b: 2", "http://h:1: refused")]
    texts = ["vllm: no port", "b: 2: http://h:1: refused", "vllm: something else"]
    manifest = changed(
        run.read_manifest(),
        failures=[Failure(backend=label, repeat=0, error=error) for label, error in failures],
        warnings=[RunWarning(code="not-measured", text=text, hint=None) for text in texts],
    )
    run.write_manifest(manifest)
    found = [warning.backend for warning in summarise_folder(run).warnings]
    assert found[: len(texts)] == ["vllm", "b: 2", UNSET]
