"""Sessions that are trees: what waits for what, what a failure ends, and prompts that grow."""

import pickle

import numpy as np
import pytest

from harness.host.access import Access
from harness.load.bodies import write_growing
from harness.load.dispatcher import Closing, SessionDispatcher
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Sessions
from harness.load.sharding import split


def sessions(*trees: list[tuple[int, tuple[int, ...]]]) -> Sessions:
    """Of each tree its calls: the wait, and so many places before it what is waited for."""
    named = np.repeat(np.arange(len(trees)), [len(tree) for tree in trees]).astype(np.int32)
    waits = np.array([wait for tree in trees for wait, _ in tree], np.int64)
    return Sessions(named, waits, [after for tree in trees for _, after in tree])


# A call, two in parallel after it, and one after both; next to them one that waits for the start alone.
DIAMOND = [(0, (0,)), (5, (1,)), (7, (2,)), (3, (0,)), (2, (2, 3))]


def test_parallel_calls_leave_after_the_same_one_and_the_next_after_both():
    work = SessionDispatcher(ClosedLoop(1), sessions(DIAMOND), t0=100, closing=Closing(100, None))
    assert [work.take(200, 0), work.take(200, 1)] == [(100, 0), (103, 3)]
    assert work.take(200, 2) is None
    work.answered(0, 100, 150, whole=True)
    assert [work.take(200, 1), work.take(200, 2)] == [(155, 1), (157, 2)]
    work.answered(2, 157, 180, whole=True)
    assert work.take(500, 2) is None
    work.answered(1, 155, 300, whole=True)
    assert work.take(500, 1) == (302, 4)
    work.answered(3, 103, 310, whole=True)
    assert work.has_more(500, 1) is False
    work.answered(4, 302, 400, whole=True)
    assert not work.has_more(500, 0)


def test_a_slot_takes_the_next_session_when_all_of_one_has_ended():
    work = SessionDispatcher(
        ClosedLoop(1), sessions(DIAMOND[:3], [(9, (0,))]), t0=0, closing=Closing(0, None)
    )
    work.take(0, 0)
    work.answered(0, 0, 10, whole=True)
    assert [work.take(99, 0)[1], work.take(99, 1)[1]] == [1, 2]
    work.answered(2, 17, 20, whole=True)
    assert work.take(99, 1) is None  # one of the first session is still in flight
    work.answered(1, 15, 30, whole=True)
    assert work.take(99, 0) == (39, 3)


def test_a_failure_ends_the_session_with_what_is_in_flight():
    work = SessionDispatcher(ClosedLoop(1), sessions(DIAMOND, [(0, (0,))]), t0=0, closing=Closing(0, None))
    assert work.take(9, 0) == (0, 0)
    work.answered(0, 0, 10, whole=True)
    assert work.take(14, 0) == (3, 3)
    assert work.take(15, 1) == (15, 1)
    work.answered(3, 3, 16, whole=False)  # the one due at 17 will not leave
    assert work.take(50, 1) is None
    work.answered(1, 15, 40, whole=True)  # nor what waits for this one; the slot is free
    assert work.take(50, 0) == (40, 5)
    work.answered(5, 40, 60, whole=True)
    assert not work.has_more(70, 0)


def test_an_open_loop_begins_trees_at_their_times_whatever_is_in_flight():
    schedule = OpenLoop(np.array([0, 50], np.int64))
    work = SessionDispatcher(schedule, sessions(DIAMOND[:3], DIAMOND[:3]), t0=0, closing=Closing(0, None))
    assert work.take(60, 0) == (0, 0)
    assert work.take(60, 1) == (50, 3)
    work.answered(3, 50, 55, whole=True)
    assert work.take(62, 1) == (60, 4)


def test_a_window_that_closes_leaves_the_rest_of_a_tree_unsent():
    work = SessionDispatcher(ClosedLoop(1), sessions(DIAMOND[:3]), t0=0, closing=Closing(0, 16))
    work.take(0, 0)
    work.answered(0, 0, 10, whole=True)
    assert work.take(15, 0) == (15, 1)
    assert not work.has_more(16, 1)


@pytest.mark.parametrize(("whole", "then"), [(True, None), (False, (20, 3))])
def test_a_tree_keeps_its_slot_for_a_call_past_the_end_unless_it_failed(whole, then):
    trees = sessions([(0, (0,)), (90, (1,)), (2, (2,))], [(0, (0,))])
    work = SessionDispatcher(ClosedLoop(1), trees, t0=0, closing=Closing(0, 50))
    work.take(0, 0)
    work.answered(0, 0, 10, whole=True)
    assert work.take(12, 0) == (12, 2)
    work.answered(2, 12, 20, whole=whole)
    assert work.take(49, 0) == then


@pytest.fixture
def growing(tmp_path):
    """Four prompts: `AB`, that and `CD`; the first letter of the first and `XY`; the third whole and `Z`."""
    own = [b"AB", b"CD", b"XY", b"Z"]
    bodies = [b'{"p":"\\u0000%b"}' % text for text in own]
    links = [(2, 0, 0), (2, 1, 2), (2, 2, 1), (1, 1, 3)]
    return write_growing(tmp_path / "bodies", bodies, b"\\u0000", links)


def test_prompts_grow_from_earlier_ones(growing):
    whole = [b'{"p":"AB"}', b'{"p":"ABCD"}', b'{"p":"AXY"}', b'{"p":"AXYZ"}']
    assert list(growing) == whole
    assert list(pickle.loads(pickle.dumps(growing))) == whole
    assert list(growing.only(np.array([1, 3]))) == [whole[1], whole[3]]


def test_workers_get_whole_trees_and_all_that_their_prompts_begin_with(growing):
    trees = sessions([(0, (0,)), (1, (1,))], [(0, (0,)), (1, (0,))])
    job = LoadJob("http://h/v1", Access(), growing, ClosedLoop(2), sessions=trees)
    (first, _), (second, seqs) = split(job, 2)
    assert list(first.bodies) == [b'{"p":"AB"}', b'{"p":"ABCD"}']
    assert (list(second.bodies), seqs.tolist()) == ([b'{"p":"AXY"}', b'{"p":"AXYZ"}'], [2, 3])
    assert second.sessions is not None
    assert list(second.sessions.after) == [(0,), (0,)]
