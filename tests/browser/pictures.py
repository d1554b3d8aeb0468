"""The pictures of the documentation, taken in headless Chromium: python -m tests.browser.pictures."""

from pathlib import Path

from tests.browser.chromium import Page

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "results/published/20261122T202156Z-shared-prefix-cd0015/report.html"


def main() -> None:
    with Page() as page:
        page.look(1280)
        page.open(REPORT)
        (ROOT / "docs" / "report-first-screen.png").write_bytes(page.picture())


if __name__ == "__main__":
    main()
