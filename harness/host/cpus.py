import os


def usable_cpus() -> int:
    """CPUs that this process may run on; all of the machine if the system does not tell (macOS)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computing_cpus() -> int:
    """CPUs for an engine: all usable but one, which the load generator and the engine's front end need."""
    return max(1, usable_cpus() - 1)
