"""Recorded traffic and prompt files, read as plain data. docs/traces.md describes the formats."""

from harness.workload.traces.dataset import Dataset, Prompt, read_dataset
from harness.workload.traces.read import holds_sessions, read_trace
from harness.workload.traces.trace import Calls, Trace, clip, window, with_sessions
