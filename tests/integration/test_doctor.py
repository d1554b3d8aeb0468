"""`bench doctor` as a user calls it. How exact it finds this machine is not asserted: tests share it."""

import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager

import pytest

from harness.doctor import loads, measure
from harness.doctor.loads import Load
from harness.doctor.result import advice
from harness.errors import ExitCode, SetupError
from harness.mockserver import running
from harness.sampling.machine import host_facts
from tests.integration.scripted import bench_here

BENCH = [sys.executable, "-m", "harness"]
SMALL = Load("concurrency", 2, gap_ms=1, tokens=2, requests=4)


def bench(*arguments, cache, **settings):
    return subprocess.run(
        [*BENCH, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "BENCH_CACHE": str(cache)},
        **settings,
    )


@pytest.mark.long
@pytest.mark.time
def test_the_examination_is_printed_and_kept(tmp_path, monkeypatch):
    done = bench("doctor", "--quick", "--json", cache=tmp_path)
    document = json.loads(done.stdout)
    verdict, loads = document["verdict"], document["loads"]
    assert done.returncode == (ExitCode.OK if verdict["fit_to_measure"] else ExitCode.INVALID)
    assert verdict["sentence"] in (tmp_path / "doctor.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "doctor.json").read_text(encoding="utf-8")) == document
    assert [(one["load"]["kind"], one["load"]["value"]) for one in loads] == [
        ("concurrency", 8),
        ("concurrency", 256),
        ("rate", 200),
    ]
    for one in loads:
        assert one["errors"] is not None, one["reasons"]
        assert one["errors"]["ttft_ms"]["p50"] < 20
        assert 0 < one["cpu_us_per_token"] < 10_000
    assert loads[2]["arrivals"]["drawn"] == pytest.approx(1, abs=0.5)
    assert document["clock"]["resolution_ns"] > 0
    assert "load 3 of 3" in done.stderr

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    assert "streams asked" in advice("concurrency", 100_000, host_facts())


def test_too_few_open_files_are_an_error_with_what_to_do(tmp_path):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (70, 70))

    done = bench("doctor", "--quick", cache=tmp_path, preexec_fn=few_files)
    assert done.returncode == ExitCode.SETUP
    assert "70 open files are too few" in done.stderr
    assert "hint: raise the hard limit" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cache_that_cannot_be_written_does_not_cost_the_figures(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("BENCH_CACHE", str(blocked))
    monkeypatch.setattr(loads, "QUICK", (SMALL,))
    done = bench_here("doctor", "--quick", code=ExitCode.SETUP)
    assert "TTFT error" in done.stdout
    assert "the result could not be stored" in done.stderr


def test_a_server_that_ends_is_an_error_with_its_name(monkeypatch):
    @contextmanager
    def lost(**options):
        with running(**options) as server:
            server.stop()
            yield server

    monkeypatch.setattr(measure, "running", lost)
    with pytest.raises(SetupError, match="bench truth: stopped answering"):
        measure.measure(SMALL, None)
