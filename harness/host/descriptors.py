"""The limit of open files."""

import resource
import sys
from contextlib import suppress

SPARE = 64  # of a process, without its connections


def allow_all() -> int:
    """Raises the soft limit of this process as far as the system allows, and returns it."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS calls its limit infinite, and refuses that
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def allow(connections: int) -> int:
    """Raises the soft limit as far as so many need and the hard one allows; returns how many fit then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + SPARE
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft - SPARE
