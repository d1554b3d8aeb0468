"""What axe-core finds in the page that is open."""

import json
from pathlib import Path

from tests.browser.chromium import Page

AXE = Path(__file__).resolve().parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
axe.run(document, { resultTypes: ['violations'] }).then(found => JSON.stringify(found.violations.map(one => [
  one.id, one.impact, one.nodes.length,
  one.nodes.slice(0, 3).map(node => node.html.slice(0, 160) + ' ' + node.failureSummary),
])))
"""


def violations(page: Page) -> list[object]:
    assert AXE.is_file(), "`make browser` installs axe-core"
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; true")
    found: list[object] = json.loads(page.evaluate(RUN))
    return found
