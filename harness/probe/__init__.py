"""Conformance probe: what a running server does, compared with what its definition declares."""

from harness.probe.examine import examine
from harness.probe.finding import Finding, Probed

__all__ = ["Finding", "Probed", "examine"]
