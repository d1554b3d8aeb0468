import sys
import tarfile
import time
from pathlib import Path

import pytest

from harness.kit import compile as compiling
from harness.kit.steps import Step

# Its own handler: what a shell starts in the background, and so the tests, may have SIGINT ignored.
ENDLESS = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("what it has")
"""


@pytest.fixture
def step(tmp_path):
    (tmp_path / "results").mkdir()
    deadline = time.monotonic() + 600
    return Step(tmp_path, tmp_path / "work", tmp_path / "results", Path(sys.executable), deadline, None)


def said(step):
    return (step.results / "step.txt").read_text()


def test_an_action_leaves_its_output_and_how_it_ended(step):
    assert step.do("works", [sys.executable, "-c", "print('fine')"]) == 0
    assert step.do("fails", [sys.executable, "-c", "raise SystemExit(4)"]) == 4
    assert step.do("absent", ["/none"]) == 127
    assert "fine" in (step.results / "works.log").read_text()
    assert "works: exit 0" in said(step)
    assert "fails: exit 4" in said(step)
    assert step.failed == 2


def test_an_action_is_interrupted_at_its_limit_and_keeps_what_it_has(step, monkeypatch):
    monkeypatch.setattr("harness.kit.steps.LEAST_S", 0)
    assert step.do("long", [sys.executable, "-c", ENDLESS], limit_s=1) == 0, "killed, and not interrupted"
    assert (step.results / "long.log").read_text().splitlines()[-1] == "what it has"


def test_an_action_is_left_out_where_the_minutes_are_over(step):
    step.deadline = time.monotonic() + 5
    assert step.do("late", [sys.executable, "-c", "print('ran')"]) == 124
    assert "left out" in said(step)
    assert not (step.results / "late.log").exists()


def test_what_cannot_be_compiled_is_said(tmp_path, monkeypatch):
    assert "--engines llamacpp" in compiling.start(tmp_path, tmp_path / "work")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / compiling.ARCHIVE).write_bytes(b"")
    monkeypatch.setenv("PATH", "")
    assert "cmake, ninja, g++ is missing" in compiling.start(tmp_path, tmp_path / "work")
    assert compiling.state(tmp_path / "work") == "absent"


def test_a_compilation_that_fails_is_told_with_its_last_line(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for name in ("cmake", "ninja", "g++"):
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\nsleep 0.2\necho no such compiler\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "sources").mkdir()
    with tarfile.open(tmp_path / "sources" / compiling.ARCHIVE, "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("llama.cpp/CMakeLists.txt"))
    work = tmp_path / "work"
    assert compiling.start(tmp_path, work).startswith("building")
    assert compiling.state(work) == "building"
    assert compiling.wait(work, 20) == "failed"
    assert compiling.progress(work) == "no such compiler"
