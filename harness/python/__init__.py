"""Runs for Python programs: what `llm_servebench` exports. Imports nothing heavy until a run is loaded."""

from harness.python.comparison import Comparison, compare
from harness.python.run import LoadWarning, Run, load, runs
