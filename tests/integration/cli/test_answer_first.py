"""The answer of a run is on standard output before its page is drawn, and the last lines come after that."""

import signal
import subprocess
import sys

import pytest

from tests.integration.scripted import MEASURED, REPORTED, bench_here, define, run_folder, summary
from tests.waiting import in_time

# `bench` that draws nothing before it reads a line. A shell may have made what it starts ignore Ctrl-C.
GATED = """
import signal, sys
from harness import report
from harness.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
build = report.build
report.build = lambda folder: input() or build(folder)
sys.exit(main())
"""
RUN = ("run", "--scenario", "fixed-length", "--backends", "calm", "--repeats", "1", *REPORTED)


@pytest.fixture
def answered(here):
    """A `bench run` that would draw next, and the lines that it has printed: up to its table."""
    define("calm", ttft_ms=300)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", GATED, *RUN], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )
    lines = []

    def read():
        while not lines or not lines[-1].startswith("8 users   "):
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()

    with process:
        try:
            in_time(read, seconds=60)
            yield process, lines
        finally:
            process.kill()


def test_the_answer_is_there_before_the_page(answered):
    process, lines = answered
    page = run_folder() / "report.html"
    assert not page.exists()
    assert summary()["state"] == "complete"
    assert any(line.startswith("8 users  calm: first token after ") for line in lines)
    out, err = process.communicate("\n", timeout=60)
    assert process.returncode in MEASURED, err
    assert f"run folder: {page.parent}\nreport:     {page}\n" in out
    assert page.exists()


def test_an_interrupted_drawing_leaves_a_whole_run(answered):
    process, _lines = answered
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    folder = run_folder()
    assert f"run folder: {folder}\n" in out
    assert err.endswith(f"kept; to make the report:\n  bench report {folder}\n")
    assert not (folder / "report.html").exists()
    assert bench_here("report", str(folder)).stdout.count(f"report:     {folder}/report.html\n") == 1
    assert (folder / "report.html").exists()
