"""The run as one HTML file: nothing is fetched, nothing foreign is trusted, it reads without script."""

from harness.report.html.page import page
from harness.report.html.source import Source

__all__ = ["Source", "page"]
