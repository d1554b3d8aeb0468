"""Whose doing an INVALID cell is."""

import re
from pathlib import Path

import pytest

from harness.findings import BLAME, blame
from harness.model import Reason, Validity
from tests.unit.report_summaries import verdict

HARNESS = Path(__file__).resolve().parents[2] / "harness"


def test_every_code_that_a_check_gives_has_its_blame():
    text = "".join((HARNESS / name).read_text() for name in ("checks.py", "traps.py", "surroundings.py"))
    given = set(re.findall(r'Reason\(\s*"([a-z-]+)"', text))
    assert len(given) > 15
    assert given <= set(BLAME)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["failed-requests"], ("engine", "failed-requests")),
        (["schedule-lag"], ("client", "schedule-lag")),
        (["failed-requests", "client-busy"], ("client", "client-busy")),
        (["client-busy", "engine-died"], ("engine", "engine-died")),
        (["too-few-samples", "dropped-requests"], ("engine", "dropped-requests")),
        (["made-up-code"], ("work", "made-up-code")),
    ],
)
def test_who_is_to_blame(codes, expected):
    reasons = [one for code in codes for one in verdict("INVALID", code, "", "", "").reasons]
    assert blame(Validity.of(reasons)) == expected


def test_doubts_beside_it_do_not_count_and_a_valid_cell_has_no_blame():
    reasons = [
        Reason("client-busy", "SUSPECT", "", "", ""),
        Reason("failed-requests", "INVALID", "", "", ""),
    ]
    assert blame(Validity.of(reasons)) == ("engine", "failed-requests")
    assert blame(Validity.of(reasons[:1])) is None
