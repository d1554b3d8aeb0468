"""`bench publish` against the real MLflow and W&B, without a server: a file store, and a run kept offline."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest
from wandb.proto.wandb_internal_pb2 import Record

ROOT = Path(__file__).parents[2]
RUN = ROOT / "results" / "published" / "20261120T123837Z-shared-prefix-8511d8"
SUMMARY = json.loads((RUN / "summary.json").read_text(encoding="utf-8"))
ESTIMATES = {
    (one["label"], one["load"]["value"], one["metric"]): one["interval"] for one in SUMMARY["estimates"]
}
POINTS = {(label, load) for label, load, _metric in ESTIMATES}


def publish(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "harness", "publish", str(RUN), *words],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, **environment},
    )


def test_mlflow_has_an_entry_per_backend_and_load(tmp_path, monkeypatch):
    store = (tmp_path / "store").as_uri()
    done = publish("--to", "mlflow", "--at", store, "--project", "engines", MLFLOW_ALLOW_FILE_STORE="true")
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(store)
    client = mlflow.MlflowClient()
    runs = client.search_runs([client.get_experiment_by_name("engines").experiment_id])
    found = {(run.data.params["backend"], float(run.data.params["load_value"])): run for run in runs}
    assert set(found) == POINTS
    for (label, load, metric), (_low, middle, _high) in ESTIMATES.items():
        assert found[label, load].data.metrics[metric] == pytest.approx(middle)
    assert {file.path for file in client.list_artifacts(runs[0].info.run_id)} >= {
        "report.html",
        "summary.json",
    }


def test_wandb_keeps_a_run_per_backend_and_load(tmp_path):
    done = publish("--to", "wandb", "--at", str(tmp_path), "--project", "engines", WANDB_MODE="offline")
    assert done.returncode == 0, done.stderr
    found = [stored(file) for file in tmp_path.glob("wandb/offline-run-*/*.wandb")]
    assert {(config["backend"], config["load_value"]) for config, _summary in found} == POINTS
    for config, summary in found:
        wanted = {
            metric: middle
            for (label, load, metric), (_low, middle, _high) in ESTIMATES.items()
            if (label, load) == (config["backend"], config["load_value"])
        }
        assert {name: summary[name] for name in wanted} == pytest.approx(wanted)


def stored(file):
    """Settings and figures of a run kept offline, in W&B's own types."""
    config, summary = {}, {}
    for data in logged(file.read_bytes()):
        record = Record.FromString(data)
        config |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
        updates = [*record.summary.update, *record.run.summary.update]
        summary |= {one.key or ".".join(one.nested_key): json.loads(one.value_json) for one in updates}
    return config, summary


def logged(data, block=32768):
    """Records of LevelDB's log format: blocks of pieces, each with checksum, length and kind."""
    place, pieces = 7, b""  # after the file's own head
    while place + 7 <= len(data):
        left = block - place % block
        length, kind = struct.unpack_from("<HB", data, place + 4)
        if left < 7 or not kind:  # a trailer of zeros
            place += left
            continue
        pieces += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last piece
            yield pieces
            pieces = b""


def test_a_missing_package_and_a_store_that_cannot_be_are_one_error(tmp_path):
    (tmp_path / "file").write_text("")
    done = publish("--to", "mlflow", "--at", "nosuch://store")
    assert done.returncode == 3
    assert done.stderr.startswith("error: mlflow: ")
    assert "Traceback" not in done.stderr
