"""A suite of runs every night: measured within a budget, kept as a history, judged by levels and not by one
night."""

from harness.nightly.page import drawn, page
from harness.nightly.run_suite import Night, Step, spend
from harness.nightly.suite import Suite, load_suite
