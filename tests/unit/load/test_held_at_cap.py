"""Requests of an open loop that waited for the cap."""

from types import SimpleNamespace

import numpy as np
import pytest

from harness.load.client_stats import _held_at_cap
from harness.load.job import OpenLoop
from tests.factories.recorded import MS, records


@pytest.mark.parametrize(("over_cap", "held"), [("wait", [False, False, True]), ("drop", [False] * 3)])
def test_a_request_waits_for_the_cap_only_where_it_is_not_dropped(over_cap, held):
    """The third is due while two are in flight, and leaves when the first has ended."""
    rows = records(
        {"intended": 0, "sent": 0, "texts": [20]},
        {"intended": 5, "sent": 5, "texts": [40]},
        {"intended": 10, "sent": 20, "texts": [60]},
    ).requests
    schedule = OpenLoop(np.array([0, 5, 10]) * MS, max_in_flight=2, over_cap=over_cap)
    worker = SimpleNamespace(share=SimpleNamespace(worker=0, job=SimpleNamespace(schedule=schedule)))
    assert _held_at_cap([worker], rows).tolist() == held
