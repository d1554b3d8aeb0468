"""Names of load points."""

import pytest

from harness.model import LoadPoint
from harness.report.findings.sentences import load_words
from harness.report.view import point_words


@pytest.mark.parametrize(
    ("kind", "value", "heading", "head"),
    [
        ("concurrency", 2048, "closed loop, concurrency 2048", "2048 users"),
        ("rate", 100.25, "open loop, 100.25 requests/s", "100.25 req/s"),
        ("rate", 100.4, "open loop, 100.4 requests/s", "100.4 req/s"),
        ("rate", 1234567.25, "open loop, 1234567.25 requests/s", "1234567.25 req/s"),
        ("rate", 5.0, "open loop, 5 requests/s", "5 req/s"),
        ("working-set", 0.5, "working set of 0.5 times the KV cache", "0.5× KV"),
        ("trace", 1.25, "trace replay, 1.25 times as fast", "1.25× pace"),
    ],
)
def test_a_load_is_named_by_the_value_that_was_asked_for(kind, value, heading, head):
    point = LoadPoint(kind, value)
    assert (point_words(point), load_words(point)) == (heading, head)


def test_loads_that_differ_in_the_seventh_digit_have_names_of_their_own():
    assert [LoadPoint("rate", value).label for value in (1000.25, 1000.254)] == ["r1000.25", "r1000.254"]
