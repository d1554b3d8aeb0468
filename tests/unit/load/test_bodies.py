import pickle

import numpy as np
import pytest

from harness.host.access import Access
from harness.load.bodies import write_bodies
from harness.load.job import ClosedLoop, LoadJob, Sessions
from harness.load.sharding import split

BODIES = [b"", b"a", b"\x00\xff" * 5000, "ü€".encode(), b"{}"]


@pytest.fixture
def bodies(tmp_path):
    return write_bodies(tmp_path / "bodies", iter(BODIES))


def test_bodies_come_back_as_they_were_written(bodies):
    assert list(bodies) == BODIES
    assert (len(bodies), bodies[-1], bodies[1:3]) == (5, BODIES[-1], BODIES[1:3])
    with pytest.raises(IndexError):
        bodies[5]


def test_a_part_and_a_copy_for_another_process_read_the_same_file(bodies):
    part = bodies.only(np.array([4, 1], np.int32))
    assert list(pickle.loads(pickle.dumps(part))) == [b"{}", b"a"]
    assert len(pickle.dumps(bodies)) < 1000, "the path and the spans, not the bodies"


def test_sessions_are_dealt_whole():
    named = np.repeat([7, 8, 9, 10, 11], [2, 1, 3, 1, 2]).astype(np.int32)
    sessions = Sessions(named, np.arange(9, dtype=np.int64))
    job = LoadJob("http://x/", Access(), [b"%d" % i for i in range(9)], ClosedLoop(4), sessions=sessions)
    parts = split(job, 2)
    assert [part.sessions.session.tolist() for part, _ in parts] == [[7, 7, 9, 9, 9, 11, 11], [8, 10]]
    assert [seqs.tolist() for _, seqs in parts] == [[0, 1, 3, 4, 5, 7, 8], [2, 6]]
    assert [part.schedule.concurrency for part, _ in parts] == [2, 2]
    assert parts[1][0].sessions.think_ns.tolist() == [2, 6]
    assert list(parts[1][0].bodies) == [b"2", b"6"]
