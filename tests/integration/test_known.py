"""What is known of a system is told where bench did not start it, and kept with the run."""

import pytest

from harness.engines.known import known
from harness.mockserver import running
from harness.spec.backend_refs import load_backend
from harness.store import RunFolder
from tests.integration.scripted import MEASURED, bench_in, run_folder, summary


@pytest.fixture(scope="module")
def attached(tmp_path_factory):
    """A router attached to, and its engine beside it: (summary, run folder, stderr)."""
    here = tmp_path_factory.mktemp("attached")
    with running(dialect="sglang", ttft_ms=200, gap_ms=10) as server:
        command = ["run", "--scenario", "fixed-length", "--backends", f"sglang-router={server.url}"]
        command += ["--requests", "8", "--concurrency", "2", "--output-tokens", "4", "--repeats", "1"]
        done = bench_in(here, *command, "--no-probe", "--no-agreement", "-v", code=MEASURED)
    return summary(here), RunFolder(run_folder(here)), done.stderr


def test_its_own_bias_is_told_once(attached):
    lines = known(load_backend("sglang-router"))
    for line in lines:
        assert attached[2].count(f"note: sglang-router: {line}") == 1


def test_a_front_is_a_warning_of_the_run(attached):
    (warning,) = [one for one in attached[0]["warnings"] if one["code"] == "front"]
    assert "sglang-router" in warning["text"]
    assert warning["hint"]


def test_it_stands_in_the_manifest_and_in_the_report(attached):
    lines = attached[1].read_json("manifest.json")["backends"]["sglang-router"]["engine"]["known"]
    assert lines == known(load_backend("sglang-router"))
    report = (attached[1].path / "report.html").read_text()
    assert "What is known of each" in report
    assert lines[-1] in report
