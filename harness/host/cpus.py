import os
import re
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
PRESSURE = Path("/proc/pressure/cpu")
BF16 = frozenset(("avx512_bf16", "amx_bf16", "bf16"))  # instructions that compute in it, of x86-64 and of ARM


def usable_cpus() -> int:
    """CPUs that this process may run on; all of the machine if the system does not tell (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computing_cpus() -> int:
    """CPUs for an engine: all usable but one, which the load generator and the engine's front end need."""
    return max(1, usable_cpus() - 1)


def waited_for_cpu_s() -> float:
    """Seconds since the machine's start in which something waited for a CPU; 0 if Linux does not tell."""
    try:
        found = re.search(r"^some .*total=(\d+)", PRESSURE.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) / 1e6 if found else 0.0


def cpu_flags() -> frozenset[str]:
    """The instructions of the first CPU, as Linux names them; empty where it lists none."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    names = ("flags", "Features")  # on x86-64, on ARM
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith(names)), ()))
