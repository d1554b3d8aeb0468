"""Histories of made-up runs: what is appended, what is one series, what became slower."""

import json

import numpy as np
import pytest

from harness.errors import SpecError
from harness.model import LoadPoint, Manifest, as_json
from harness.report.text import trends
from harness.store.history import append_history, history_path, read_history
from harness.verdicts import Rules, compare
from harness.verdicts.history import drifts, entries, series
from tests.factories.documents import made
from tests.factories.summaries import cell, summary

METRIC = "ttft_ms.p50"
HOST = {"cpu": "EPYC", "cpus_usable": 2, "gpus": None, "hostname": "a-new-one-each-night"}


def night(number, p50, *, host=HOST, repeats=3, **changes):
    cells = [cell("vllm", repeat=repeat, p50=p50 + 0.01 * repeat, **changes) for repeat in range(repeats)]
    rules = Rules(primary=METRIC, metrics=(METRIC,))
    created = f"2026-11-{number + 1:02d}T03:00:00+00:00"
    manifest = made(Manifest, created_utc=created, host=host)
    named = {"run": f"run-{number:02d}", "scenario": "chat"}
    return entries(manifest, summary(*cells, **named, **compare(cells, rules)._asdict()))


def history(values):
    return [entry for number, value in enumerate(values) for entry in night(number, value)]


def noisy(values, seed=0):
    return np.asarray(values) * np.exp(np.random.default_rng(seed).normal(0, 0.01, len(values)))


def test_an_entry_is_a_backend_at_a_load():
    (entry,) = night(0, 100.0)
    assert (entry.label, entry.load, entry.engine_version) == (
        "vllm",
        LoadPoint("concurrency", 4),
        "b11549",
    )
    assert list(entry.metrics) == [METRIC]
    low, middle, high = entry.metrics[METRIC].interval
    assert low < middle < high
    assert entry.metrics[METRIC].runs == 3
    json.dumps(as_json(entry))


def test_a_quiet_history_has_no_drift():
    assert drifts(history(noisy([100.0] * 20))) == []


def test_a_step_is_found_once_it_stays():
    assert drifts(history(noisy([100.0] * 10 + [110.0] * 2))) == []
    (found,) = drifts(history(noisy([100.0] * 10 + [110.0] * 3)))
    assert (found.kind, found.since.run, found.best.run) == ("step", "run-10", "run-09")
    assert found.ratio == pytest.approx(1.1, abs=0.02)
    assert found.as_json() == {
        "scenario": "chat",
        "label": "vllm",
        "load": {"kind": "concurrency", "value": 4},
        "metric": METRIC,
        "worse_by": found.ratio - 1,
        "kind": "step",
        "since_run": "run-10",
        "since_engine_version": found.since.engine_version,
        "best_run": "run-09",
        "best_engine_version": found.best.engine_version,
    }


def test_slow_creep_is_found():
    """Half a per cent a night: no night is worse than the one before by more than its noise."""
    (found,) = drifts(history(noisy(100 * 1.005 ** np.arange(25))))
    assert found.kind == "creep"
    assert found.ratio > 1.05


def test_better_is_no_regression_and_a_return_is_measured_from_the_best():
    assert drifts(history(noisy([100.0] * 8 + [80.0] * 8))) == []
    (found,) = drifts(history(noisy([100.0] * 8 + [80.0] * 8 + [90.0] * 4)))
    assert found.ratio == pytest.approx(90 / 80, abs=0.03)


def test_another_machine_or_other_requests_are_another_series():
    other = {**HOST, "cpu": "Xeon"}
    mixed = [*history([100.0] * 5), *night(6, 200.0, host=other), *night(7, 300.0, workload_sha256="x")]
    assert sorted(len(one.values) for one in series(mixed)) == [1, 1, 5]


def test_a_night_of_one_run_has_no_bounds_and_is_read_again(tmp_path):
    path = history_path(tmp_path)
    (entry,) = night(0, 100.0, repeats=1)
    low, _middle, high = entry.metrics[METRIC].interval
    assert low is None
    assert high is None
    append_history(path, [entry])
    assert read_history(path)[0].metrics == entry.metrics


def test_the_file_is_only_appended_to(tmp_path):
    path = history_path(tmp_path)
    assert read_history(path) == []
    assert append_history(path, night(0, 100.0)) == 1
    before = path.read_bytes()
    assert append_history(path, [*night(0, 100.0), *night(1, 101.0)]) == 1
    assert path.read_bytes().startswith(before)
    assert [entry.run for entry in read_history(path)] == ["run-00", "run-01"]


@pytest.mark.parametrize(
    ("line", "words"), [("{", "not a line of JSON"), ('{"schema": 9}', "schema 9 is not 1")]
)
def test_a_line_that_is_none_is_named(tmp_path, line, words):
    path = tmp_path / "runs.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(SpecError, match=words) as raised:
        read_history(path)
    assert raised.value.where == f"{path}:2"


def test_what_is_printed():
    made = history(noisy([100.0] * 10 + [110.0] * 3))
    text = trends.terminal(series(made), drifts(made))
    assert text.startswith("chat vllm c4 TTFT p50  ")
    assert "% worse than its best level, by one step, since run-10" in text
    assert "| chat vllm c4 TTFT p50 | 13 |" in trends.markdown(series(made), drifts(made))
    assert trends.terminal([], []).strip() == "No run in the history: `bench history RUN` adds one."
    assert trends.spark([1.0, 1.0]) == "▁▁"
