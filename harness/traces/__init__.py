"""Recorded traffic and prompt files, read as plain data. What each format means is in docs/traces.md."""

from harness.traces.dataset import Dataset, Prompt, read_dataset
from harness.traces.read import read_trace
from harness.traces.trace import Trace, clip, window

__all__ = ["Dataset", "Prompt", "Trace", "clip", "read_dataset", "read_trace", "window"]
