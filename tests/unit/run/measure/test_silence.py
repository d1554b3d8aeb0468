"""Whether a server is asked, after a load, if it still serves."""

import numpy as np
import pytest

from harness.load.job import LoadResult
from harness.records.layout import Outcome, Records, empty_requests
from harness.run.measure.silence import silence_of

OK, REFUSED, LATE = Outcome.OK, Outcome.CONNECT_FAILED, Outcome.TIMEOUT


def result(*outcomes, **settings):
    """`outcomes` in the order in which requests ended, which is not that of their rows."""
    rows = empty_requests(len(outcomes))
    order = np.random.default_rng(0).permutation(len(outcomes))
    rows["outcome"][order] = outcomes
    rows["end_ns"][order] = np.arange(len(outcomes))
    return LoadResult(0, 0, Records(rows, np.zeros(0), [], [], []), client=None, **settings)


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [
        ([], None),
        ([OK, OK, OK, OK], None),
        ([REFUSED, REFUSED, REFUSED, OK], None),
        ([OK, REFUSED, OK, REFUSED], "its last request got no connection"),
        ([OK, REFUSED, OK, REFUSED, REFUSED], "its last 2 requests got no connection"),
        ([OK, REFUSED, REFUSED, REFUSED], "its last 3 requests got no connection"),
        ([REFUSED] * 40, "its last 40 requests got no connection"),
        ([OK, REFUSED, REFUSED, REFUSED, Outcome.DROPPED], "its last 3 requests got no connection"),
        ([OK, LATE, REFUSED, REFUSED, REFUSED], "its last 3 requests got no connection"),
    ],
)
def test_a_server_that_took_no_connection_at_the_end_is_asked(outcomes, why):
    """Of one that restarted, all cells were measured while it was down, within a second each. A load of one
    user ends with one such request.
    """
    found = silence_of(result(*outcomes), 9, deaf=False)
    assert (found and found.why) == why
    assert found is None or not found.closed


@pytest.mark.parametrize(
    ("timeouts", "closed_by", "why"),
    [
        (1, "schedule", "its last request had no answer within 9 s"),
        (3, "schedule", "its last 3 requests had no answer within 9 s"),
        (3, "silence", "3 requests in a row had no answer within 9 s"),
    ],
)
def test_timeouts_are_named_with_their_limit(timeouts, closed_by, why):
    found = silence_of(result(OK, LATE, timeouts=timeouts, closed_by=closed_by), 9, deaf=True)
    assert (found.why, found.closed, found.deaf) == (why, closed_by == "silence", True)
