"""Prints the Python of the tests: this one, or the system's of the same version where that is faster.

pyenv compiles Python without profile-guided optimisation unless it is asked to, and all tests then take half
as long again. Neither records how it was built in the same way, so a loop is timed in both.
"""

import subprocess
import sys
from pathlib import Path

SYSTEM = Path("/usr/bin/python3")
FASTER = 1.2  # by less it may be chance
LOOP = """
import ensurepip, sys, time, venv
spent = []
for _ in range(5):
    began = time.process_time()
    sum(number * number % 7 for number in range(200_000))
    spent.append(time.process_time() - began)
print(*sys.version_info[:2], min(spent))
"""


def timed(python):
    """(version, CPU seconds of the loop); None if it cannot make an environment."""
    done = subprocess.run([python, "-I", "-c", LOOP], capture_output=True, text=True)
    *version, spent_s = done.stdout.split() or [""]
    return (version, float(spent_s)) if done.returncode == 0 else None


def chosen():
    own, other = timed(sys.executable), timed(SYSTEM) if SYSTEM.exists() else None
    if own and other and own[0] == other[0] and own[1] > FASTER * other[1]:
        return SYSTEM
    return sys.executable


print(chosen())
