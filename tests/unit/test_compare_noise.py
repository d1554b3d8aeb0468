"""A backend under two labels: how far apart, what could be found, where it is kept."""

import pytest

from harness.compare import Rules, compare
from harness.run import noise
from tests.unit.test_compare_verdict import NOISE, cells

METRIC = "ttft_ms.p50"
RULES = Rules(primary=METRIC, metrics=(METRIC,))
HOST = {"machine": "x86_64", "cpu": "EPYC", "cpus_usable": 2, "gpus": None}


def found():
    measured = [*cells("vllm#a", 101), *cells("vllm#b", 100, noise=-NOISE), *cells("tgi#a", 300)]
    return compare(measured, RULES)["noise"]


def test_only_a_backend_with_itself_is_noise():
    (one,) = found()
    assert (one["backend"], one["metric"], one["verdict"]) == ("vllm", METRIC, "same")
    assert one["apart"] == pytest.approx(0.01, abs=1e-4)
    assert one["smallest_detectable"] > 0.02
    assert compare([*cells("vllm", 101), *cells("tgi", 100)], RULES)["noise"] == []


def test_floors_are_kept_by_machine_and_scenario(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    assert noise.stored(HOST, "chat") == {}
    noise.store(HOST, "chat", found())
    kept = noise.stored(HOST, "chat")
    assert kept["vllm"]["c4"][METRIC] == pytest.approx(0.01, abs=1e-4)
    noise.store(HOST, "chat", [found()[0] | {"backend": "tgi", "apart": 0.5}])
    assert set(noise.stored(HOST, "chat")) == {"vllm", "tgi"}
    assert noise.stored(HOST, "other") == noise.stored(HOST | {"cpu": "Xeon"}, "chat") == {}


def test_a_damaged_file_is_no_floor(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    noise.path().write_text("{")
    assert noise.stored(HOST, "chat") == {}
