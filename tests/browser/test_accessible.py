"""axe-core over every part of each page, open: light, dark and on a phone."""

import pytest

from tests.browser.axe import violations
from tests.browser.chromium import OPEN_ALL

DESK = 1280


@pytest.mark.parametrize(
    ("width", "dark"), [(DESK, False), (DESK, True), (390, False)], ids=["light", "dark", "phone"]
)
@pytest.mark.parametrize("report", ["two_engines", "nine_engines", "several_runs", "night"])
def test_axe_finds_nothing(page, report, width, dark, request):
    page.open(request.getfixturevalue(report), width, dark=dark)
    page.evaluate(OPEN_ALL)
    # A phone has the colours of a desk, and nine engines write in those of two.
    assert violations(page, colours=width == DESK and report != "nine_engines") == []
