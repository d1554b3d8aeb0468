"""Runs of `bench` in Python: `import llm_servebench as sb; run = sb.load("results/…"); run.cells()`.

The names in `__all__` are the public interface, together with the columns that docs/python.md lists. Every
figure is that of the commands. The code is in the package `harness`, which may change in any version.
"""

from harness import __version__
from harness.errors import BenchError, DamagedError
from harness.python import Comparison, LoadWarning, Run, compare, load, runs

__all__ = [
    "BenchError",
    "Comparison",
    "DamagedError",
    "LoadWarning",
    "Run",
    "__version__",
    "compare",
    "load",
    "runs",
]
