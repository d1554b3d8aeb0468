import subprocess
import sys

import psutil
import pytest

from harness.engines.provide import logged
from harness.engines.provide.logged import Log, own_log, run_logged
from tests.waiting import until

SLEEPS = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"]


def test_output_goes_to_the_log_and_its_last_line_to_the_display(tmp_path, monkeypatch):
    monkeypatch.setattr(logged, "_REPORT_EVERY_S", 0)
    log, said = tmp_path / "log", []
    code = "import time; print('first'); print('second', flush=True); time.sleep(1); raise SystemExit(3)"
    assert run_logged([sys.executable, "-c", code], log, said.append, "doing") == 3
    assert log.read_text() == "first\nsecond\n"
    assert said[-1].startswith("doing (")
    assert said[-1].endswith("s): second")


def test_an_interruption_ends_the_program(tmp_path, monkeypatch):
    monkeypatch.setattr(logged, "_REPORT_EVERY_S", 0)
    log = tmp_path / "log"

    def interrupt(line):
        if Log(log).tail(1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_logged(SLEEPS, log, interrupt, "doing")
    with pytest.raises(ProcessLookupError):
        logged.os.kill(int(log.read_text()), 0)


RUNS = """
import sys
from pathlib import Path
from harness.engines.provide.logged import run_logged
run_logged([sys.executable, "-c", {program!r}], Path({log!r}), print, "doing")
"""


def test_what_it_runs_dies_with_a_bench_that_is_killed(tmp_path):
    log = tmp_path / "log"
    bench = subprocess.Popen([sys.executable, "-c", RUNS.format(program=SLEEPS[2], log=str(log))])
    until(lambda: Log(log).tail(1), "the program has begun")
    pid = int(Log(log).tail(1))
    bench.kill()
    bench.wait()
    until(lambda: not psutil.pid_exists(pid), "the program is gone")


def test_the_tail_is_of_lines_that_say_something(tmp_path):
    log = tmp_path / "log"
    assert Log(log).tail(3) == ""
    log.write_bytes(b"one\n\n  two \n\xff\n" + b"\n" * 5)
    assert Log(log).tail(2) == "  two\n\ufffd"
    assert Log(log, 4).tail(5) == "  two\n\ufffd"


def test_the_tail_has_no_colours(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"\x1b[2m12:00\x1b[0m \x1b[1;31mERROR\x1b[0m no weights\n\x1b[0m\n")
    assert Log(log).tail(2) == "12:00 ERROR no weights"


def test_a_line_longer_than_any_screen_keeps_its_beginning_and_the_lines_before_it(tmp_path):
    log = tmp_path / "log"
    log.write_text("RuntimeError: no GPU\nValueError: cannot serve [" + "1234," * 20_000 + "]\nbye\n")
    first, second, last = Log(log).tail(3).splitlines()
    assert (first, last) == ("RuntimeError: no GPU", "bye")
    assert second.startswith("ValueError: cannot serve [1234,")
    assert len(second) == 2000


def test_a_display_shows_nothing_of_what_ran_before(tmp_path, monkeypatch):
    """Two installations have one log, and the second begins to look for packages as the first did."""
    monkeypatch.setattr("harness.engines.provide.logged._REPORT_EVERY_S", 0.1)
    log = tmp_path / "pip.log"
    log.write_text("Installing collected packages: numpy\n")
    seen = []
    run_logged(
        [sys.executable, "-c", "import time; time.sleep(0.5)"],
        log,
        seen.append,
        "doing",
        state=lambda part: part.tail(5),
    )
    assert seen
    assert all("Installing" not in line for line in seen)


def test_two_that_run_at_once_have_logs_of_their_own(tmp_path):
    """Two `bench up` of one engine, on two GPUs. Earlier starts are not kept: the file would grow."""
    asked = tmp_path / "logs" / "up-vllm==0.31.0.log"
    with own_log(asked) as first:
        first.write_text("first")
        with own_log(asked) as second:
            assert (first.name, second.name) == ("up-vllm==0.31.0.log", "up-vllm==0.31.0-2.log")
        assert first.read_text() == "first"
    with own_log(asked) as later:
        assert later == first
        assert not later.read_text()
