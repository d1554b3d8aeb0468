"""CPUs that this process may run on."""

import os


def usable_cpus() -> int:
    """Where the system does not tell (macOS), those that there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
