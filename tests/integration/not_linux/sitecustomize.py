"""Python of a machine that is not Linux, as far as bench asks it."""

import os
import select
import sys
import sysconfig
from importlib import import_module

# These look at the platform when they are imported, and must see the real one.
for module in (
    "asyncio",
    "ctypes.util",
    "multiprocessing.context",
    "psutil",
    "subprocess",
    "urllib.request",
    "zoneinfo",
):
    import_module(module)
sysconfig.get_config_vars()

sys.platform = "darwin"
for name in ("sched_getaffinity", "sched_setaffinity", "pidfd_open"):
    delattr(os, name)
del select.epoll
