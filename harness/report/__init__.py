"""Tables, pictures and a page from a run folder alone: no engine, no network, the same bytes every time."""

from harness.report.build import build

__all__ = ["build"]
