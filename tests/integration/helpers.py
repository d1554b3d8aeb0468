"""Load workers and samplers as forks of a process that has imported them: every cell starts one of each.

What is started has the parent, session, pipe, streams, directory and environment that a fresh interpreter
would have; only its heap differs. Where a test sets what Python or the loader reads before `main`, or the
machine has no such call, a fresh interpreter is started.
"""

import atexit
import ctypes
import gc
import json
import os
import platform
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
from functools import cache
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path

from harness.host import helper_process

ROOT = Path(__file__).resolve().parents[2]
USERS = ("harness.load.worker_pool", "harness.sampling.watcher")  # of helper_process.spawn
PRELOADED = ("harness.load.worker", "harness.sampling.sampler")
_OURS = dict(os.environ)
_CLONE_PARENT = 0x8000
_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine()) if sys.platform == "linux" else None


def before_main(environment):
    """What Python and the loader read before `main`."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_", "OMP_"))}


class Child(subprocess.Popen):
    """A child that subprocess did not start, waited for and ended as if it had."""

    def __init__(self, pid):
        self.args, self.pid, self.returncode = ["helper"], pid, None
        self.stdin = self.stdout = self.stderr = None
        self._child_created, self._waitpid_lock = True, threading.Lock()


class Starter:
    """The near end of a process that starts helpers as children of this one."""

    def __init__(self, near):
        self._near, self._lock = near, threading.Lock()

    def spawn(self, module, env=None):
        """In place of helper_process.spawn."""
        if _CLONE is None or before_main(os.environ) != before_main(_OURS):
            return helper_process.spawn(module, env)
        here, there = Pipe()
        environment = {**helper_process.without_credentials(os.environ), **(env or {})}
        job = json.dumps([module, os.getpid(), str(Path.cwd()), environment]).encode()
        with there, self._lock:
            socket.send_fds(self._near, [len(job).to_bytes(8, "big")], [there.fileno(), 1, 2])
            self._near.sendall(job)
            return Child(int.from_bytes(_read(self._near, 8), "big")), here


@cache
def of_this_process():
    """One for all; the thread of the first call must outlive every helper."""
    near, far = socket.socketpair()
    command = [sys.executable, "-m", __name__, str(far.fileno())]
    process = subprocess.Popen(
        command, cwd=ROOT, env=_OURS, pass_fds=[far.fileno()], stdin=subprocess.DEVNULL
    )
    far.close()
    atexit.register(lambda: (near.close(), process.wait()))
    return Starter(near)


def forked():
    """Of a process that has imported all it needs, and has no thread yet."""
    near, far = socket.socketpair()
    if not os.fork():
        near.close()
        _serve(far)
    far.close()
    return Starter(near)


def _serve(far):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    while True:
        size, streams, *_ = socket.recv_fds(far, 8, 3)
        if not size:
            os._exit(0)
        job = json.loads(_read(far, int.from_bytes(size, "big")))
        if not (pid := _fork_sibling()):
            far.close()
            _become(streams, *job)
        for descriptor in streams:
            os.close(descriptor)
        far.sendall(pid.to_bytes(8, "big"))


def _fork_sibling():
    """As os.fork(), for a child of the parent."""
    api = ctypes.pythonapi
    api.PyOS_BeforeFork()
    pid = ctypes.PyDLL(None).syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    (api.PyOS_AfterFork_Parent if pid else api.PyOS_AfterFork_Child)()
    return pid


def _become(streams, module, parent, cwd, environment):
    code = 1
    try:
        os.setsid()
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        pipe, *said = streams
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *said)):
            os.dup2(descriptor, number)
        sys.argv = [module, str(pipe), str(parent)]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _read(end, count):
    data = b""
    while len(data) < count:
        more = end.recv(count - len(data))
        assert more, "the process that starts helpers is gone"
        data += more
    return data


if __name__ == "__main__":
    for name in PRELOADED:
        import_module(name)
    gc.freeze()  # what is here stays: no fork looks through it for garbage in the midst of a load
    _serve(socket.socket(fileno=int(sys.argv[1])))
