"""The run as one HTML file: it fetches nothing, trusts nothing foreign, and reads without script."""

from harness.report.html.page import page
from harness.report.html.source import Source
