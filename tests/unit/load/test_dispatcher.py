"""Whose turn it is and when: work, shares, ticks, on numbers only."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.host.access import Access
from harness.load.dispatcher import (
    NEVER,
    ClosedLoopDispatcher,
    Closing,
    OpenLoopDispatcher,
    SessionDispatcher,
)
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Sessions
from harness.load.messages import Share
from harness.load.pacing import LONGEST_TICK_NS, choose_tick
from harness.load.sharding import choose_workers, split
from harness.load.transport import Transport
from harness.load.worker import make_dispatcher


def offsets(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def job(schedule: ClosedLoop | OpenLoop, count: int) -> LoadJob:
    return LoadJob("http://h/v1", Access(), [b"%d" % i for i in range(count)], schedule)


def test_open_work_hands_out_at_the_intended_times_however_late_it_is_asked() -> None:
    work = OpenLoopDispatcher(OpenLoop(offsets(10, 20, 30)), t0=100, closing=Closing(100, None))
    assert work.take(109, 0) is None
    assert work.next_due(109, 0) == 110
    assert work.take(125, 0) == (110, 0)
    assert work.take(125, 1) == (120, 1)
    assert work.take(125, 2) is None
    assert work.take(500, 2) == (130, 2)
    assert not work.has_more(500, 0)


def test_open_work_waits_at_the_cap_and_keeps_the_intended_time() -> None:
    work = OpenLoopDispatcher(OpenLoop(offsets(0, 1), max_in_flight=1), t0=0, closing=Closing(0, None))
    assert work.take(5, 0) == (0, 0)
    assert work.take(5, 1) is None
    assert work.next_due(5, 1) == NEVER
    assert work.take(99, 0) == (1, 1)
    assert work.dropped == []


def test_open_work_drops_at_the_cap_where_the_schedule_says_so() -> None:
    work = OpenLoopDispatcher(
        OpenLoop(offsets(0, 1, 9), max_in_flight=1, over_cap="drop"), t0=0, closing=Closing(0, None)
    )
    assert work.take(5, 0) == (0, 0)
    assert work.take(5, 1) is None
    assert work.dropped == [(1, 1)]
    assert work.next_due(5, 1) == 9


def test_open_work_closes() -> None:
    work = OpenLoopDispatcher(OpenLoop(offsets(0, 5, 10), max_in_flight=1), t0=0, closing=Closing(0, 10))
    assert work.take(6, 0) == (0, 0)
    assert work.has_more(9, 1)
    assert work.take(10, 0) is None
    assert not work.has_more(10, 0)
    assert work.overdue(12) == [(5, 1)]  # due, never sent; the third was never due


def test_closed_work_gives_a_slot_its_next_request_when_the_answer_ended() -> None:
    work = ClosedLoopDispatcher(ClosedLoop(2), 3, t0=100, closing=Closing(100, None))
    assert work.take(99, 0) is None
    assert [work.take(100, 0), work.take(100, 1)] == [(100, 0), (100, 1)]
    assert work.take(150, 2) is None
    assert work.has_more(150, 2)
    work.freed(0, 100, 140)
    assert work.take(150, 1) == (140, 2)
    work.freed(1, 100, 160)
    assert not work.has_more(160, 0)


def test_closed_work_thinks_before_each_request() -> None:
    work = ClosedLoopDispatcher(ClosedLoop(1, offsets(7, 11)), 2, t0=100, closing=Closing(100, None))
    assert work.take(106, 0) is None
    assert work.take(107, 0) == (107, 0)
    work.freed(0, 107, 200)
    assert work.next_due(200, 0) == 211


def test_closed_work_starts_nothing_after_the_window() -> None:
    work = ClosedLoopDispatcher(ClosedLoop(1, offsets(0, 50)), 2, t0=0, closing=Closing(0, 40))
    assert work.take(0, 0) == (0, 0)
    work.freed(0, 0, 10)  # with its think time the next is due too late
    assert not work.has_more(20, 0)


def test_think_time_past_the_end_ends_one_slot_and_leaves_its_request_to_the_next() -> None:
    work = ClosedLoopDispatcher(ClosedLoop(2, offsets(0, 0, 90, 5, 5)), 5, t0=0, closing=Closing(0, 40))
    assert [work.take(0, 0), work.take(0, 1)] == [(0, 0), (0, 1)]
    work.freed(0, 0, 10)  # whoever is here thinks until 100
    assert work.take(30, 1) is None
    assert work.has_more(30, 1)
    work.freed(1, 0, 20)
    assert work.take(30, 0) == (25, 2)
    work.freed(2, 25, 30)
    assert work.take(36, 0) == (35, 3)


def test_slots_that_think_past_the_end_from_the_start_leave_the_others_all_requests() -> None:
    work = ClosedLoopDispatcher(
        ClosedLoop(2, offsets(90, 1, 5), spread=True), 3, t0=0, closing=Closing(0, 40)
    )
    assert work.take(9, 0) == (1, 0)
    work.freed(0, 1, 11)
    assert work.take(20, 0) == (16, 1)
    work.freed(1, 16, 21)
    assert not work.has_more(39, 0)  # there is a draw for each request: the first came again


def _chats(*turns: int, think: Sequence[int] = ()) -> Sessions:
    named = np.repeat(np.arange(len(turns), dtype=np.int32), turns)
    return Sessions(named, offsets(*think) if think else np.zeros(len(named), np.int64))


@pytest.mark.parametrize("over_cap", ["wait", "drop"])
def test_nothing_is_due_in_a_window_that_has_closed(over_cap: Literal["wait", "drop"]) -> None:
    open_loop = OpenLoop(offsets(0, 5), max_in_flight=1, over_cap=over_cap)
    for work in (
        OpenLoopDispatcher(open_loop, t0=0, closing=Closing(0, 10)),
        SessionDispatcher(open_loop, _chats(1, 1), t0=0, closing=Closing(0, 10)),
        SessionDispatcher(ClosedLoop(2), _chats(1, 1), t0=0, closing=Closing(0, 10)),
        ClosedLoopDispatcher(ClosedLoop(2), 2, t0=0, closing=Closing(0, 10)),
    ):
        assert work.take(0, 0) == (0, 0)
        assert work.next_due(9, 0) in (0, 5)
        assert work.next_due(10, 0) == NEVER  # the drain may sleep


@pytest.mark.parametrize(("whole", "then"), [(True, None), (False, (10, 2))])
def test_a_chat_that_waits_past_the_end_keeps_its_slot_unless_it_failed(
    whole: bool, then: tuple[int, int] | None
) -> None:
    work = SessionDispatcher(ClosedLoop(1), _chats(2, 1, think=(0, 50, 0)), t0=0, closing=Closing(0, 40))
    assert work.take(0, 0) == (0, 0)
    work.answered(0, 0, 10, whole=whole)  # its next turn would be due at 60
    assert work.take(39, 0) == then
    assert not work.has_more(39, 0)


def test_turns_of_a_closed_loop_that_the_end_overtook_are_no_requests_at_the_cap() -> None:
    work = SessionDispatcher(ClosedLoop(1), _chats(2), t0=0, closing=Closing(0, 40))
    assert work.take(0, 0) == (0, 0)
    work.answered(0, 0, 39, whole=True)  # ended before the end, and handled after it
    assert work.take(41, 0) is None
    assert work.overdue(99) == []


def test_a_closed_loop_that_is_stopped_begins_no_chat() -> None:
    work = SessionDispatcher(ClosedLoop(1), _chats(1, 1), t0=0, closing=Closing(0, None))
    assert work.take(0, 0) == (0, 0)
    work.answered(0, 0, 30, whole=False)  # cancelled
    assert work.overdue(31) == []


def test_turns_of_an_open_loop_are_held_back_by_its_cap() -> None:
    schedule = OpenLoop(offsets(0, 5), max_in_flight=1)
    work = SessionDispatcher(schedule, _chats(1, 1), t0=0, closing=Closing(0, 10))
    assert work.take(6, 0) == (0, 0)
    assert work.take(6, 1) is None
    assert work.overdue(12) == [(5, 1)]


def _second_dues(schedule: ClosedLoop, ends: list[int], count: int) -> list[int]:
    work = ClosedLoopDispatcher(schedule, count, t0=0, closing=Closing(0, None))
    slots = [work.take(0, i) for i in range(schedule.concurrency)]
    assert [slot for slot in slots if slot] == [(0, i) for i in range(schedule.concurrency)]
    for index, end in enumerate(ends):
        work.freed(index, 0, end)
    dues = []
    while (due := work.take(NEVER - 1, 0)) is not None:
        dues.append(due[0])
    return dues


def test_a_spread_start_spaces_second_requests_over_one_answer() -> None:
    assert _second_dues(ClosedLoop(4), [100] * 4, 8) == [100] * 4
    assert _second_dues(ClosedLoop(4, spread=True), [100] * 4, 8) == [100, 125, 150, 175]
    # Answers that end apart already: nothing waits.
    assert _second_dues(ClosedLoop(4, spread=True), [100, 150, 200, 250], 8) == [100, 150, 200, 250]
    think = offsets(*[0] * 4, *[40] * 4)
    assert _second_dues(ClosedLoop(4, think, spread=True), [100] * 4, 8) == [140, 140, 150, 175]


def test_only_second_requests_are_spread() -> None:
    work = ClosedLoopDispatcher(ClosedLoop(2, spread=True), 6, t0=0, closing=Closing(0, None))
    assert [work.take(0, 0), work.take(0, 1)] == [(0, 0), (0, 1)]
    work.freed(0, 0, 100)
    work.freed(1, 0, 100)
    assert [work.take(500, 0), work.take(500, 1)] == [(100, 2), (150, 3)]
    work.freed(2, 100, 600)
    work.freed(3, 150, 600)
    assert [work.take(700, 0), work.take(700, 1)] == [(600, 4), (600, 5)]
    assert work.spread is not None
    assert work.spread.over_at == 150


def test_workers_deal_the_places_of_a_spread_among_themselves() -> None:
    dues = []
    for part, _ in split(job(ClosedLoop(4, spread=True), 8), 2):
        assert isinstance(part.schedule, ClosedLoop)
        dues += _second_dues(part.schedule, [100] * 2, 4)
    assert sorted(dues) == [100, 125, 150, 175]


def test_sessions_spread_the_second_of_each_slot() -> None:
    sessions = Sessions(np.repeat(np.arange(4, dtype=np.int32), 2), np.zeros(8, np.int64))
    work = SessionDispatcher(ClosedLoop(2, spread=True), sessions, t0=0, closing=Closing(0, None))
    assert [work.take(0, 0), work.take(0, 1)] == [(0, 0), (0, 2)]
    for index in (0, 2):
        work.answered(index, 0, 100, whole=True)
    assert [work.take(100, 0), work.take(100, 1)] == [(100, 1), (100, 3)]
    for index in (1, 3):
        work.answered(index, 100, 200, whole=True)
    assert [work.take(400, 0), work.take(400, 1)] == [(200, 4), (250, 6)]


def test_split_keeps_one_schedule() -> None:
    whole = job(OpenLoop(offsets(*range(0, 70, 10)), max_in_flight=5), 7)
    parts = split(whole, 3)
    seqs = np.concatenate([seqs for _, seqs in parts])
    assert sorted(seqs.tolist()) == list(range(7))
    for part, mine in parts:
        assert isinstance(part.schedule, OpenLoop)
        assert part.schedule.intended_ns.tolist() == (mine * 10).tolist()
        assert part.bodies == [b"%d" % i for i in mine]
    assert sum(part.schedule.max_in_flight for part, _ in parts) == 5


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 9))
def test_split_of_a_closed_loop_gives_each_worker_requests_for_its_slots(
    concurrency: int, count: int, workers: int
) -> None:
    parts = split(job(ClosedLoop(concurrency, np.arange(count)), count), workers)
    assert sorted(int(seq) for _, seqs in parts for seq in seqs) == list(range(count))
    for part, mine in parts:
        assert isinstance(part.schedule, ClosedLoop)
        assert part.schedule.think_ns is not None
        assert part.schedule.think_ns.tolist() == mine.tolist()
        assert 1 <= part.schedule.concurrency <= concurrency
    if count >= concurrency:
        assert sum(part.schedule.concurrency for part, _ in parts) == concurrency


def test_no_more_workers_than_slots() -> None:
    assert len(split(job(OpenLoop(offsets(1, 2, 3), max_in_flight=2), 3), 3)) == 2


def test_workers_grow_with_the_load_and_leave_cores_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.load.sharding.usable_cpus", lambda: 8)
    assert choose_workers(job(ClosedLoop(64), 64)) == 1
    assert choose_workers(job(ClosedLoop(5000), 5000)) == 3
    assert choose_workers(job(ClosedLoop(50_000), 50_000)) == 4


def test_tick_is_prompt_when_quiet_and_short_against_the_gap_of_a_stream() -> None:
    second = 1_000_000_000
    assert choose_tick(0, second, 1) == 0
    assert choose_tick(800, second, 8) == 0
    assert choose_tick(20_480, second, 1024) == LONGEST_TICK_NS
    assert choose_tick(51_200, second, 256) == 1_250_000
    assert choose_tick(100_000, second, 8) == 0


@pytest.mark.parametrize("sessions", [None, (1,) * 9])
def test_a_closed_loop_lasts_from_its_first_measured_request(sessions: tuple[int, ...] | None) -> None:
    work: ClosedLoopDispatcher | SessionDispatcher
    if sessions is None:
        work = ClosedLoopDispatcher(ClosedLoop(1), 9, 0, Closing(0, 40, warmup=2))
    else:
        work = SessionDispatcher(ClosedLoop(1), _chats(*sessions), 0, Closing(0, 40, warmup=2))
    due = []
    for now in range(0, 300, 30):  # each answer takes 30, whatever is warm-up
        if (request := work.take(now, 0)) is not None:
            due.append(request)
            if isinstance(work, SessionDispatcher):
                work.answered(request[1], now, now + 30, whole=True)
            else:
                work.freed(request[1], now, now + 30)
    assert due == [(0, 0), (30, 1), (60, 2), (90, 3)]  # until 60 + 40
    assert not work.has_more(100, 0)


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("chats", [None, _chats(*[1] * 7)])
def test_an_open_loop_lasts_from_when_its_first_measured_request_is_due(
    workers: int, chats: Sessions | None
) -> None:
    """Whichever share has that request: a later one of another share began its duration later."""
    load = replace(
        job(OpenLoop(offsets(0, 30, 60, 90, 99, 100, 130)), 7),
        sessions=chats,
        warmup_requests=2,
        duration_s=40e-9,
    )
    taken = []
    for worker, (part, seqs) in enumerate(split(load, workers)):
        share = Share(part, seqs, worker, Path(), Transport.POLL)
        work = make_dispatcher(share, 5)
        while (request := work.take(104, 0)) is not None:
            taken.append(int(seqs[request[1]]))
        assert not work.has_more(105, 0)
        assert work.overdue(300) == []
    assert sorted(taken) == [0, 1, 2, 3, 4]


def test_an_open_loop_of_warm_up_alone_has_no_end_but_its_last_request() -> None:
    load = replace(job(OpenLoop(offsets(0, 30)), 2), warmup_requests=2, duration_s=1e-9)
    ((part, seqs),) = split(load, 1)
    work = make_dispatcher(Share(part, seqs, 0, Path(), Transport.POLL), 5)
    assert [work.take(35, 0), work.take(35, 0)] == [(5, 0), (35, 1)]


def test_who_thinks_past_an_end_that_was_not_known_yet_leaves_the_request_to_the_next() -> None:
    work = ClosedLoopDispatcher(ClosedLoop(2, offsets(0, 90, 5, 5)), 4, 0, Closing(0, 40, warmup=1))
    assert work.take(0, 0) == (0, 0)
    work.freed(0, 0, 10)  # the other slot thinks until 90
    assert work.take(15, 0) == (15, 1)  # until 55
    work.freed(1, 15, 20)
    assert work.take(25, 0) == (25, 2)
    work.freed(2, 25, 30)
    assert work.take(54, 0) == (30, 3)


def test_each_worker_closes_after_its_own_warm_up() -> None:
    closing = Closing(0, None, warmup=1)
    assert not closing.begins(10, 1)
    assert closing.at == NEVER
    closing = Closing(0, 40, warmup=1)
    assert not closing.begins(10, 0)
    assert closing.begins(20, 3)  # the first of these to be due may be any
    assert not closing.begins(30, 1)
    assert closing.at == 60
