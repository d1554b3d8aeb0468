"""Runs for Python programs: what `llm_servebench` exports. Imports nothing heavy until a run is loaded."""

from harness.api.comparison import Comparison, compare
from harness.api.run import LoadWarning, Run, load, runs

__all__ = ["Comparison", "LoadWarning", "Run", "compare", "load", "runs"]
