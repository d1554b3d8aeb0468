"""The scripted OpenAI-compatible server: known timing, every real write time, engines' habits, faults."""

from harness.truth.process import TruthServer, running

__all__ = ["TruthServer", "running"]
