"""Runs one engine and takes it down, all its processes, on request or when its master is gone.

    guard.py GRACE_SECONDS CORES COMMAND…

CORES: numbers with commas between, or any.

Standard input is a socket to the master. Lines of JSON go up it: {"pid": n} when the engine runs,
{"error": text} when it cannot be started, {"exit": status} once nothing of it is left (a negative status is a
signal). The end of the stream in the other direction means stop: it comes when the master says so and,
because the kernel closes a dead process's sockets, when the master was killed.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TIDY_S = 2.0  # from the end of the engine to SIGKILL for what it left
REAP_S = 5.0


def main() -> int:
    master = socket.socket(fileno=0)
    grace_s, cores, command = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if cores != "any":
        os.sched_setaffinity(0, map(int, cores.split(",")))  # the engine inherits it
    libc = ctypes.CDLL(None)
    # Grandchildren whose parent died become our children, so that none is out of reach.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken = at_each_end_of_a_child()
    try:
        engine = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # Single-threaded here, so preexec_fn is safe: the engine does not outlive a killed guard either.
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
    except OSError as error:
        tell(master, error=error.strerror or str(error))
        return 1
    tell(master, pid=engine.pid)
    asked = wait(engine.pid, woken, master.fileno())
    os.killpg(engine.pid, signal.SIGTERM)
    if asked:
        wait(engine.pid, woken, grace_s=grace_s)
        os.kill(engine.pid, signal.SIGKILL)
    let_tidy(engine.pid)
    kill_group(engine.pid)
    status = engine.wait()
    reap_the_rest()
    tell(master, exit=status)
    return 0


def at_each_end_of_a_child() -> int:
    """A pipe that can be read when a child has ended. Linux before 5.3 and some sandboxes have no pidfd."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def wait(engine: int, pipe: int, *others: int, grace_s: float | None = None) -> bool:
    """Waits for the end of the engine. Returns whether another could be read before, or the time was over."""
    began = time.monotonic()
    while os.waitid(os.P_PID, engine, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        left_s = None if grace_s is None else max(began + grace_s - time.monotonic(), 0)
        ready = select.select([pipe, *others], [], [], left_s)[0]
        if pipe in ready:
            os.read(pipe, 4096)
        elif ready or left_s == 0:
            return True
    return False


def tell(master: socket.socket, **message: object) -> None:
    with contextlib.suppress(OSError):  # the master may be gone
        master.sendall(json.dumps(message).encode() + b"\n")


def let_tidy(engine: int) -> None:
    """Python's resource tracker removes shared memory once all that use it are gone, if it is not killed."""
    end = time.monotonic() + TIDY_S
    others = [0]
    while others and time.monotonic() < end:
        others = [pid for pid in children() if pid != engine and os.waitpid(pid, os.WNOHANG)[0] == 0]
        time.sleep(0.01)


def children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def reap_the_rest() -> None:
    """Kills and collects what left the group."""
    end = time.monotonic() + REAP_S
    while time.monotonic() < end:
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
