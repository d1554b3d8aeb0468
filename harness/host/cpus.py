import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.host.system_files import text_of

CPU_INFO = Path("/proc/cpuinfo")
CGROUPS = Path("/sys/fs/cgroup")
PROCESSES = Path("/proc")
PRESSURE = Path("/proc/pressure/cpu")
BF16 = frozenset(("avx512_bf16", "amx_bf16", "bf16"))  # instructions that compute in it, of x86-64 and of ARM


def usable_cpus() -> int:
    """CPUs that this process may run on, no more than its limit of CPU time is worth; all of the machine if
    the system does not tell (macOS).
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(allowed, math.ceil(cpu_quota() or allowed))


def cpu_quota(process: int | None = None) -> float | None:
    """CPUs' worth of time that the cgroups of a process, else of this one, get: a pod's limit, or
    `docker run --cpus`.

    None: there is no limit, or none that is seen here.
    """
    return min(_quotas(process), default=None)


def computing_cpus(cpuset: str = "") -> int:
    """CPUs for an engine: all usable but one, which the load generator and the engine's front end need.

    `cpuset`: those of its container, such as "0-3,8"; "": it may run where this process may.
    """
    return max(1, (_listed(cpuset) or usable_cpus()) - 1)


def _quotas(process: int | None) -> Iterator[float]:
    """The limit of each cgroup from the process's own up to the root: the least one holds."""
    ours = text_of(PROCESSES / "self" / "cgroup").splitlines()
    theirs = ours if process is None else text_of(PROCESSES / str(process) / "cgroup").splitlines()
    for line in theirs:
        _number, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            root, names = CGROUPS / "cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        elif not controllers:
            root, names = CGROUPS, ["cpu.max"]
        else:
            continue
        own = root / path.lstrip("/")
        # In a container the path may be the host's, of which only the root is there: that of this process.
        if line not in ours and (".." in own.parts or not own.is_dir()):
            continue
        for folder in (own, *own.parents):
            words = " ".join(text_of(folder / name) for name in names).split()
            if len(words) == 2 and all(map(str.isdecimal, words)):  # else "max" or -1: no limit
                yield int(words[0]) / int(words[1])
            if folder == root:
                break


def _listed(cpuset: str) -> int:
    """How many CPUs a list such as "0-3,8" names; 0 for another text."""
    parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip()) for part in cpuset.split(",")]
    return sum(int(part[2] or part[1]) - int(part[1]) + 1 for part in parts if part)


def waited_for_cpu_s() -> float:
    """Seconds since the machine's start in which something waited for a CPU; 0 if Linux does not tell."""
    found = re.search(r"^some .*total=(\d+)", text_of(PRESSURE), re.MULTILINE)
    return int(found[1]) / 1e6 if found else 0.0


def cpu_flags() -> frozenset[str]:
    """The instructions of the first CPU, as Linux names them; empty where it lists none."""
    lines = text_of(CPU_INFO).splitlines()
    names = ("flags", "Features")  # on x86-64, on ARM
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith(names)), ()))
