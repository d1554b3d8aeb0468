"""The pictures of the documentation, taken in headless Chromium: python -m tests.browser.pictures."""

import tempfile
from pathlib import Path

from tests.browser.chromium import Page
from tests.browser.conftest import rebuilt

ROOT = Path(__file__).resolve().parents[2]
RUN = "20261125T020543Z-shared-prefix-9d36a6"  # the run that docs/reading-a-result.md takes apart


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Page() as page:
        page.open(rebuilt(Path(folder), RUN), 1280)
        (ROOT / "docs" / "report-first-screen.png").write_bytes(page.picture())


if __name__ == "__main__":
    main()
