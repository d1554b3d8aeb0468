"""What became different around the night at which a figure became worse."""

import json

import pytest

from harness.model import as_json
from harness.report.findings.changed_then import changed_words, with_changes
from harness.report.findings.series_words import since_lines
from harness.store import RunFolder
from harness.verdicts.history import drifts, series
from tests.factories.documents import changed
from tests.factories.histories import night
from tests.factories.runs import TWO, Shape, copy_of, make_run

VALUES = [100.0, 100.5, 100.0, 150.0, 150.5, 150.0, 150.2]


def entry(number, value, *, label="llamacpp", version="1.0", **keys):
    return night(number, value, label=label, runs=3, engine_version=version, run=f"run-{number}", **keys)


@pytest.fixture(scope="module")
def a_run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs"), Shape(TWO[:1], concurrency=(2,), repeats=2, requests=6))


def nights(a_run, tmp_path, changes):
    """Runs of seven nights; `changes`: by number, of the manifest from this one on."""
    manifest = a_run.read_manifest()
    for number in range(len(VALUES)):
        folder = RunFolder(copy_of(a_run, tmp_path).path.rename(tmp_path / f"run-{number}"))
        manifest = changed(manifest, **changes.get(number, {}))
        text = json.dumps({"schema": 1, **as_json(manifest)})
        folder.files.write("manifest.json", text.encode())


def drift_of(tmp_path, **given):
    entries = [entry(number, value, **given) for number, value in enumerate(VALUES)]
    (found,) = with_changes(drifts(series(entries)), tmp_path)
    return found


def test_a_change_next_to_the_first_night_of_the_level_is_named_with_its_day(a_run, tmp_path):
    """Noise puts that night one too early: a change after it is as likely to be the cause."""
    host = a_run.read_manifest().host
    nights(a_run, tmp_path, {4: {"host": changed(host, kernel="6.99")}})
    found = drift_of(tmp_path)
    assert found.since.run == "run-3"
    (step,) = found.steps
    (kernel,) = step.changed
    assert (kernel.run.run, kernel.difference.what, kernel.difference.new) == ("run-4", "kernel", "6.99")
    assert changed_words(found.steps) == f"kernel {host.kernel} to 6.99 (llamacpp, 2026-11-05)"


def test_a_change_nights_away_is_not_named(a_run, tmp_path):
    nights(a_run, tmp_path, {6: {"host": changed(a_run.read_manifest().host, kernel="6.99")}})
    assert changed_words(drift_of(tmp_path).steps) == "nothing that bench knows of"


def test_of_runs_that_are_gone_the_version_is_known(tmp_path):
    versions = ["0.26"] * 3 + ["0.27"] * 4
    entries = [entry(n, value, version=versions[n]) for n, value in enumerate(VALUES)]
    (found,) = with_changes(drifts(series(entries)), tmp_path)
    assert changed_words(found.steps) == "engine version 0.26 to 0.27 (llamacpp, 2026-11-04)"
    (step,) = found.as_json()["steps"]
    assert step["changed"] == [
        {"run": "run-3", "what": "engine version", "baseline": "0.26", "new": "0.27", "matters": False}
    ]


def test_all_backends_at_once_are_one_line(tmp_path):
    """That points to the machine."""
    entries = [entry(n, value, label=label) for n, value in enumerate(VALUES) for label in ("vllm", "sglang")]
    found = series(entries)
    assert list(since_lines(found, with_changes(drifts(found), tmp_path))) == [
        "Worse since 2026-11-04: every backend, vllm (1 of 1 figure) and sglang (1 of 1 figure), by 49.9%. "
        "Changed around then: nothing that bench knows of."
    ]


def test_two_steps_are_two_lines_each_with_its_own_size(tmp_path):
    """The second is no reason to forget the first, and is not as large as both."""
    values = [100.0, 100.5, 100.0, 108.0, 108.5, 108.0, 119.0, 119.5, 119.0, 119.2]
    entries = [entry(n, value, version="0.27" if n >= 3 else "0.26") for n, value in enumerate(values)]
    found = series(entries)
    assert list(since_lines(found, with_changes(drifts(found), tmp_path))) == [
        "Worse since 2026-11-07: llamacpp (1 of 1 figure), by 10.2%. Changed around then: nothing that bench "
        "knows of.",
        "Worse since 2026-11-04: llamacpp (1 of 1 figure), by 8.0%. Changed around then: engine version 0.26 "
        "to 0.27 (llamacpp, 2026-11-04).",
    ]


def test_a_backend_with_one_worse_figure_of_three_is_not_said_to_be_worse_as_a_whole(tmp_path):
    metrics = ("ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50")
    entries = [
        entry(
            n, value if label == "vllm" or metric == metrics[0] else 100.0 + n % 2, label=label, metric=metric
        )
        for n, value in enumerate(VALUES)
        for label in ("vllm", "sglang")
        for metric in metrics
    ]
    found = series(entries)
    (line,) = since_lines(found, drifts(found))
    assert line.startswith("Worse since 2026-11-04: vllm (3 of 3 figures) and sglang (1 of 3 figures), by ")
