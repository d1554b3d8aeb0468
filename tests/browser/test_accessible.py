"""axe-core over every part of the report, open: light, dark and on a phone."""

import json
from pathlib import Path

import pytest

from tests.browser.chromium import OPEN_ALL

AXE = Path(__file__).resolve().parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """
axe.run(document, { resultTypes: ['violations'] }).then(found => JSON.stringify(found.violations.map(one => [
  one.id, one.impact, one.nodes.length,
  one.nodes.slice(0, 3).map(node => node.html.slice(0, 160) + ' ' + node.failureSummary),
])))
"""


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (390, False)], ids=["light", "dark", "phone"]
)
@pytest.mark.parametrize("report", ["two_engines", "nine_engines", "several_runs"])
def test_axe_finds_nothing(page, report, width, dark, request):
    assert AXE.is_file(), "`make browser` installs axe-core"
    page.look(width, dark=dark)
    page.open(request.getfixturevalue(report))
    page.evaluate(OPEN_ALL)
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; true")
    assert json.loads(page.evaluate(RUN)) == []
