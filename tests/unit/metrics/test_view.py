"""Parts of a cell have their own requests and events."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.view import RequestView
from harness.records.layout import EVENT_DTYPE, Records, empty_requests


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), unique_by=lambda request: request[0]),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4))),
)
def test_a_part_has_the_events_of_its_requests_in_their_order(requests, stretches):
    """Whichever request the events are of, in however many stretches."""
    rows = empty_requests(len(requests))
    rows["seq"] = [seq for seq, _ in requests]
    mask = np.array([chosen for _, chosen in requests], bool)
    seqs = [seq for seq, count in stretches for _ in range(count)]
    events = np.zeros(len(seqs), EVENT_DTYPE)
    events["seq"], events["stamp_ns"] = seqs, np.arange(len(seqs))
    part = RequestView(Records(rows, events, (), (), ())).part(mask)
    assert part.requests.tolist() == rows[mask].tolist()
    wanted = {seq for seq, chosen in requests if chosen}
    assert part.records.events.tolist() == [event for event in events.tolist() if event[0] in wanted]
