"""Published claims about serving engines, compared with what a run measured.

Pure but for one data file.
"""

from harness.claims.book import Book, Claim, load_book
from harness.claims.judge import judge

__all__ = ["Book", "Claim", "judge", "load_book"]
