"""Conformance probe: what a running server does, compared with what its definition declares."""

from harness.model import Probed
from harness.probe.examine import examine
from harness.probe.first_look import Look, look
