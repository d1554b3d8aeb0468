"""What others have claimed about serving engines, held against what a run measured.

Pure but for one data file.
"""

from harness.claims.book import Book, Claim, load_book
from harness.claims.judge import judge

__all__ = ["Book", "Claim", "judge", "load_book"]
