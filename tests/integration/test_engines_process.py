"""The guarded process alone: how it ends."""

import os
import sys

import pytest

from harness.engines.start import process as engine_process
from harness.engines.start.process import _GUARD, EngineProcess
from harness.errors import SetupError
from tests.waiting import alive

# A signal that comes just before one long sleep would not cut it short.
READY = "import sys, signal, time\n{}\nprint('up', flush=True)\nfor _ in range(600): time.sleep(0.1)"


def run(tmp_path, code, grace_s=10.0):
    process = EngineProcess([sys.executable, "-c", code], os.environ, tmp_path / "log", grace_s=grace_s)
    while process.exited() is None and "up" not in (tmp_path / "log").read_text():
        pass
    return process


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (READY.format("0"), "killed by SIGTERM"),
        (READY.format("signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"), "exit code 0"),
        ("raise SystemExit(4)", "exit code 4"),
        ("import os; os.kill(os.getpid(), 35)", "killed by signal 35"),
    ],
)
def test_how_it_ended_is_told(tmp_path, code, ending):
    with run(tmp_path, code) as process:
        pass
    assert process.exited() == ending
    assert not alive(process.pid)


@pytest.mark.parametrize(
    ("code", "ending"), [(READY.format("0"), "killed by SIGTERM"), ("raise SystemExit(4)", "exit code 4")]
)
def test_linux_before_5_3_and_sandboxes_have_no_pidfd(tmp_path, monkeypatch, code, ending):
    (tmp_path / "guard.py").write_text(
        f"import os, runpy\ndel os.pidfd_open\nrunpy.run_path({str(_GUARD)!r}, run_name='__main__')"
    )
    monkeypatch.setattr(engine_process, "_GUARD", tmp_path / "guard.py")
    monkeypatch.delattr(os, "pidfd_open")
    with run(tmp_path, code) as process:
        pass
    assert process.exited() == ending
    assert not alive(process.pid)


def test_one_that_ignores_the_polite_way_is_killed(tmp_path):
    process = run(tmp_path, READY.format("signal.signal(signal.SIGTERM, signal.SIG_IGN)"), grace_s=0.2)
    process.stop()
    assert process.exited() == "killed by SIGKILL"
    assert not alive(process.pid)


def test_its_output_is_logged_and_nothing_of_ours_is_open_in_it(tmp_path):
    code = (
        "import os, sys; print(sorted(os.listdir('/proc/self/fd')), 'up', flush=True); "
        "print('bad', file=sys.stderr)"
    )
    with (tmp_path / "ours").open("w"), run(tmp_path, code) as process:
        while process.exited() is None:
            pass
    assert (tmp_path / "log").read_text() == "['0', '1', '2', '3'] up\nbad\n"  # 3: the listed folder itself


def test_a_command_that_is_no_program(tmp_path):
    with pytest.raises(SetupError, match="cannot be started"):
        EngineProcess([str(tmp_path)], os.environ, tmp_path / "log")


def test_a_guard_that_dies_before_its_engine_runs_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_process, "_GUARD", tmp_path / "guard.py")
    (tmp_path / "guard.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(SetupError, match="guard process was killed"):
        EngineProcess([sys.executable], os.environ, tmp_path / "log")


# As the resource tracker of multiprocessing: it lives until all that share its pipe are gone.
TRACKED = """
import signal, subprocess, sys
code = "import sys; print('tracks', flush=True); sys.stdin.read(); open(sys.argv[1], 'w').close()"
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
tracker = subprocess.Popen([sys.executable, "-c", code, {!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
tracker.stdout.readline()
"""


@pytest.mark.parametrize("end", ["0", "import os; os.kill(os.getpid(), signal.SIGKILL)"])
def test_what_removes_its_shared_memory_is_not_killed_before(tmp_path, end):
    """Segments of vLLM stayed in /dev/shm after a stop."""
    with run(tmp_path, TRACKED.format(str(tmp_path / "removed")) + READY.format(end)) as process:
        pass
    assert (tmp_path / "removed").exists()
    assert not alive(process.pid)


TIDIES_SLOWLY = """
import json, os, socket, subprocess, sys, time
master = socket.socket(fileno=0)
engine = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL)
master.sendall(json.dumps({"pid": engine.pid}).encode() + b"\\n")
os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
print("up", flush=True)
time.sleep(0.5)
master.sendall(json.dumps({"exit": engine.wait()}).encode() + b"\\n")
"""


def test_a_death_is_seen_before_all_that_it_left_behind_is_gone(tmp_path, monkeypatch):
    """An engine without metrics is asked once, at the end of its cell."""
    monkeypatch.setattr(engine_process, "_GUARD", tmp_path / "guard.py")
    (tmp_path / "guard.py").write_text(TIDIES_SLOWLY)
    with EngineProcess(
        [sys.executable, "-c", "raise SystemExit(4)"], os.environ, tmp_path / "log"
    ) as process:
        while "up" not in (tmp_path / "log").read_text():
            pass
        assert process.exited() == "exit code 4"
