"""What a running server really does, held against what its definition declares."""

from harness.probe.examine import examine
from harness.probe.finding import Finding, Probed

__all__ = ["Finding", "Probed", "examine"]
