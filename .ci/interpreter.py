"""Prints the Python that `make` gives the tests: this one, or a faster one of the same version.

pyenv compiles Python without profile-guided optimisation unless it is asked to: all tests then take a sixth
more CPU time. A Linux distribution's own Python is optimised, although Debian's does not record it.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

SYSTEM = Path("/usr/bin/python3")
VERSION = "import ensurepip, sys, venv; print(sys.version_info[:2])"  # fails where it makes no environments


def optimised():
    return "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS"))


def version_of(python):
    return subprocess.run([python, "-I", "-c", VERSION], capture_output=True, text=True).stdout.strip()


def chosen():
    if sys.platform != "linux" or optimised() or not SYSTEM.exists():
        return sys.executable
    return SYSTEM if version_of(SYSTEM) == str(sys.version_info[:2]) else sys.executable


print(chosen())
