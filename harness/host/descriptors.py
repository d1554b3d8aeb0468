"""The limit of open files."""

import resource
from contextlib import suppress


def allow_all() -> None:
    """Raises the soft limit of this process as far as the system allows."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS calls its limit infinite, and refuses that
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
