"""Containers of a backend, for `bench down` and `bench logs`."""

import re
from typing import TYPE_CHECKING

from harness.errors import SetupError

if TYPE_CHECKING:
    from harness.engines.start.containers.owners import Running


def of_backend(name: str) -> "list[Running]":
    """All containers for "". Raises SpecError for a name that neither a container nor a definition has, also
    where no Docker answers.
    """
    from harness.engines.start.containers import daemon
    from harness.engines.start.containers.owners import running

    try:
        found = running(daemon.Daemon(), name)
    except SetupError:
        _check_name(name)
        raise
    if not found:
        _check_name(name)
    return found


def _check_name(name: str) -> None:
    from harness.spec.files import locate

    if name:
        locate("backends", re.split("==|@", name)[0])
