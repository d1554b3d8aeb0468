"""A helper process of ours: a fresh interpreter with a pipe, that dies with its parent."""

import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import harness

STATUS = Path("/proc/self/status")
CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)  # in names of variables
_PR_SET_PDEATHSIG = 1
_withheld: set[str] = set()


def spawn(
    module: str, env: Mapping[str, str] | None = None
) -> "tuple[subprocess.Popen[bytes], Connection[Any, Any]]":
    """Starts a process, not a fork: the caller may have threads, and its heap must not be the child's.

    `module` gets two arguments, the pipe's descriptor and the parent's pid, and calls `set_up` first. With
    -P nothing is imported from the working directory.
    """
    here, there = Pipe()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(there.fileno()), str(os.getpid())],
        pass_fds=[there.fileno()],
        env={**without_credentials(os.environ), **(env or {}), "PYTHONPATH": import_path()},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the parent, which tells its children
    )
    there.close()
    return process, here


def import_path() -> str:
    """PYTHONPATH of a child: this package, which may be a checkout that is not installed, and the user's."""
    package = str(Path(harness.__file__).parent.parent)
    return os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))


def withhold(variable: str) -> None:
    """Keeps an environment variable from every child, whatever its name: it holds a credential."""
    _withheld.add(variable)


def without_credentials(environment: Mapping[str, str], keep: str = "") -> dict[str, str]:
    """The environment for a child without credentials. `keep`: a pattern of names left in."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _withheld and (not CREDENTIAL.search(name) or (keep and re.fullmatch(keep, name)))
    }


def follow(number: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn`, safe without threads: the child gets this signal when its parent dies. Linux only."""
    if sys.platform != "linux":
        return lambda: None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, number)


def asked_to_stop() -> list[signal.Signals]:
    """Signals that ask a process to stop; without that of a closed terminal under `nohup`."""
    hung_up = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hung_up]


def ended_within(process: "subprocess.Popen[Any]", grace_s: float) -> int:
    """The exit code of one that was asked to stop; it is killed where it takes longer."""
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def how_it_ended(status: int) -> str:
    """The words for the exit status of a process, as `subprocess` gives it."""
    if status >= 0:
        return f"exit code {status}"
    known = -status in set(signal.Signals)  # those of real time have no names
    return f"killed by {signal.Signals(-status).name if known else f'signal {-status}'}"


def peak_rss_bytes() -> int:
    """The peak of this process since it began; where the kernel keeps none, as gVisor's, ru_maxrss, which
    begins with what its parent had reached.
    """
    with suppress(OSError), STATUS.open(encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts in bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def open_descriptors() -> int | None:
    """None where the kernel does not list them."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return None


def set_up(parent: int) -> None:
    """Runs in the child, before anything else."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    follow(signal.SIGKILL)()
    if os.getppid() != parent:  # it died before the kernel knew that we want to follow
        sys.exit(1)


@contextmanager
def in_words(who: str) -> Iterator[None]:
    """Turns what the machine refuses the child, such as space on the disk, into one line and an exit."""
    try:
        yield
    except OSError as error:
        print(f"error: {who}: {error.strerror or error}", file=sys.stderr)
        sys.exit(1)
