"""The pictures of the documentation, taken in headless Chromium: python -m tests.browser.pictures."""

import tempfile
from pathlib import Path

from tests.browser.chromium import Page
from tests.browser.conftest import rebuilt

ROOT = Path(__file__).resolve().parents[2]
RUN = "20261122T122433Z-batch-1-8-32-d2c1a5"  # vLLM and llama.cpp, which are ahead in different metrics


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Page() as page:
        page.look(1280)
        page.open(rebuilt(Path(folder), RUN))
        (ROOT / "docs" / "report-first-screen.png").write_bytes(page.picture())


if __name__ == "__main__":
    main()
