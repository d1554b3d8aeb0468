"""Cell by cell, on the page."""

import pytest

from harness.report.html.cells import answers
from harness.report.html.source import Source
from tests.factories.summaries import cell, summary

IMPORTED = {"tool": "aiperf", "level": "records"}


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"conditions": {"api": "chat"}}, True),
        ({"conditions": {"api": "transcriptions"}}, True),
        ({"conditions": {"api": "embeddings"}}, False),
        ({"conditions": {"api": "rerank"}}, False),
        ({"imported": IMPORTED}, False),
    ],
)
def test_what_a_model_said_is_shown_where_it_said_something(changes, shown):
    found = Source(summary(cell(**changes)), None, {}, (), (), {}, {}, ())
    assert (answers(found) is not None) == shown
