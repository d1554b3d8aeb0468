"""What axe-core finds in the page that is open."""

import json
from pathlib import Path

from tests.browser.chromium import Page

AXE = Path(__file__).resolve().parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
OF_COLOURS = ("color-contrast", "link-in-text-block")
RUN = """
options => axe.run(document, options).then(found => JSON.stringify(found.violations.map(one => [
  one.id, one.impact, one.nodes.length,
  one.nodes.slice(0, 3).map(node => node.html.slice(0, 160) + ' ' + node.failureSummary),
])))
"""


def violations(page: Page, *, colours: bool = True) -> list[object]:
    """Of all rules, or without those about `colours`, which take most of the time."""
    assert AXE.is_file(), "`make browser` installs axe-core"
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; true")
    rules = {rule: {"enabled": colours} for rule in OF_COLOURS}
    options = {"resultTypes": ["violations"], "rules": rules}
    found: list[object] = json.loads(page.evaluate(f"({RUN})({json.dumps(options)})"))
    return found
