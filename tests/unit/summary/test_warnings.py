"""Warnings of a run, as its summary has them."""

import pytest

from harness.model import UNSET, Failure, RunWarning
from harness.report.findings.notes import no_verdict
from harness.summary import run, summarise_folder, summarise_run
from harness.verdicts import pairs
from tests.factories.documents import changed
from tests.factories.runs import SMALL, make_run
from tests.factories.summaries import cell


def test_a_warning_of_an_older_manifest_names_the_backend_that_failed(tmp_path):
    made = make_run(tmp_path, SMALL)
    failures = [("vllm", "vllm: no port"), ("b: 2", "http://h:1: refused")]
    texts = ["vllm: no port", "b: 2: http://h:1: refused", "vllm: something else"]
    manifest = changed(
        made.read_manifest(),
        failures=[Failure(backend=label, repeat=0, error=error) for label, error in failures],
        warnings=[RunWarning(code="not-measured", text=text, hint=None) for text in texts],
    )
    made.write_manifest(manifest)
    found = [warning.backend for warning in summarise_folder(made).warnings]
    assert found[: len(texts)] == ["vllm", "b: 2", UNSET]


@pytest.mark.parametrize("limit", [2, 3])
def test_more_backends_than_anybody_compares_get_no_verdicts_and_a_warning(tmp_path, monkeypatch, limit):
    for module in (pairs, run):
        monkeypatch.setattr(module, "MOST_TOGETHER", limit)
    manifest = changed(make_run(tmp_path, SMALL).read_manifest(), repeats=1)
    summary = summarise_run(manifest, [cell(label) for label in "abc"], {})
    found = [warning.text for warning in summary.warnings if warning.code == "too-many-backends"]
    assert bool(summary.comparison) == (limit == 3)
    assert found == ["3 backends, and pairs of more than 2 are not compared"] * (limit == 2)
    assert no_verdict(summary).startswith("No verdict: 3 backends, and" if found else "No verdict: 1 repeat")
