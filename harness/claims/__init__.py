"""Published claims about serving engines, compared with what a run measured.

Pure but for one data file.
"""

from harness.claims.catalog import Catalog, Claim, load_catalog
from harness.claims.judge import judge
