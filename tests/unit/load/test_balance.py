"""Requests dealt to replicas, and replicas to load processes."""

import numpy as np
import pytest

from harness.host.access import Access
from harness.load.balance import Dealt, LeastOutstanding, balancer_of, round_robin
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Sessions
from harness.load.sharding import split

COUNT = 97


def sessions(*turns):
    named = np.repeat(np.arange(len(turns), dtype=np.int32), turns)
    return Sessions(named, np.zeros(len(named), np.int64))


def job(schedule, urls, chats=None):
    bodies = [b"%d" % seq for seq in range(COUNT if chats is None else len(chats.session))]
    dealt = round_robin(len(bodies), chats, urls)
    return LoadJob("u0", Access(), bodies, schedule, chats, replicas=dealt, other_urls=("u",) * (urls - 1))


def test_round_robin_is_the_order_of_the_schedule():
    assert round_robin(7, None, 3).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert round_robin(7, sessions(3, 1, 2, 1), 2).tolist() == [0, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize("urls", [1, 2, 3])
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "chats", [None, sessions(*[1 + n % 3 for n in range(60)])], ids=["requests", "chats"]
)
@pytest.mark.parametrize("is_open", [True, False])
def test_however_many_processes_a_request_has_its_replica_and_its_time(urls, workers, chats, is_open):
    starts = COUNT if chats is None else len(chats.starts())
    schedule = OpenLoop(np.arange(starts, dtype=np.int64)) if is_open else ClosedLoop(12)
    whole = job(schedule, urls, chats)
    parts = split(whole, workers)
    seqs = np.concatenate([seqs for _, seqs in parts])
    assert sorted(seqs.tolist()) == list(range(len(whole.bodies)))
    for part, mine in parts:
        assert part.replicas.tolist() == whole.replicas[mine].tolist()
        if is_open:
            first = mine if chats is None else mine[np.isin(mine, chats.starts())]
            unit = first if chats is None else np.searchsorted(chats.starts(), first)
            assert part.schedule.intended_ns.tolist() == unit.tolist()
        # No process works for one URL alone.
        counts = np.bincount(part.replicas, minlength=urls)
        assert counts.min() * 3 >= counts.max()


def test_the_replica_with_the_fewest_in_flight_is_chosen_and_equals_take_turns():
    balancer = LeastOutstanding(3, None)
    assert [balancer.choose(index) for index in range(4)] == [0, 1, 2, 0]
    balancer.ended(2)
    balancer.ended(2 - 1)
    assert [balancer.choose(index) for index in range(2)] == [1, 2]
    idle = LeastOutstanding(2, None)
    chosen = []
    for index in range(4):
        chosen.append(idle.choose(index))
        idle.ended(chosen[-1])
    assert chosen == [0, 1, 0, 1], "an idle pair is used evenly"


def test_a_session_stays_where_its_first_turn_went():
    balancer = LeastOutstanding(2, sessions(2, 2, 1))
    assert [balancer.choose(index) for index in (0, 2)] == [0, 1]
    balancer.ended(1)
    assert balancer.choose(1) == 0, "though the other has fewer"
    assert balancer.choose(4) == 1


def test_who_decides():
    assert isinstance(balancer_of(LoadJob("u", Access(), [b""], ClosedLoop(1))), Dealt)
    assert isinstance(balancer_of(job(ClosedLoop(1), 2)), Dealt)
    undealt = LoadJob("u", Access(), [b""], ClosedLoop(1), other_urls=("v",))
    assert isinstance(balancer_of(undealt), LeastOutstanding)
