"""What a window decides, on a scripted carrier and with a clock that only the carrier moves."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import pytest

from harness.load.balance import Dealt
from harness.load.bounds import Limits
from harness.load.carrier import Counters
from harness.load.dispatcher import NEVER, ClosedLoopDispatcher, Closing, OpenLoopDispatcher
from harness.load.exchange import Exchange
from harness.load.http1 import Answer
from harness.load.job import ClosedLoop, OpenLoop
from harness.load.window import CHORE_NS, Window
from harness.records.layout import UNKNOWN, Outcome

MS = 1_000_000


@dataclass
class Clock:
    now: int = 0

    def monotonic_ns(self) -> int:
        return self.now


@dataclass
class Scripted:
    """Connects after `connect_ns` and answers after `answer_ns` more; NEVER: not at all."""

    window: Window
    clock: Clock
    connect_ns: int = 0
    answer_ns: int = 10 * MS
    oversized: bool = False
    counters: Counters = field(default_factory=lambda: Counters([]))
    sends_at_once: int = 2
    dropped: list[int] = field(default_factory=list)
    _next: list[tuple[int, Exchange]] = field(default_factory=list)

    def open_ahead(self, count: int) -> str:
        return ""

    def send(self, exchange: Exchange) -> None:
        self._next.append((self.clock.now + self.connect_ns, exchange))
        self._step()

    def run(self) -> None:
        while (wake := self.window.step(self.clock.now)) is not None:
            self.clock.now = max(self.clock.now, min([wake, *(due for due, _ in self._next)]))
            self._step()

    def drop(self, exchanges: Collection[Exchange]) -> None:
        self.dropped += [exchange.index for exchange in exchanges]
        self._next = [(due, exchange) for due, exchange in self._next if exchange.index not in self.dropped]

    def close(self) -> None: ...

    def _step(self) -> None:
        now = self.clock.now
        for due, exchange in [step for step in self._next if step[0] <= now]:
            self._next.remove((due, exchange))
            if exchange.sent == UNKNOWN:
                self.window.sent_at(exchange, now)
                exchange.answer = Answer()
                exchange.answer.oversized = self.oversized
                if self.answer_ns != NEVER:
                    self._next.append((now + self.answer_ns, exchange))
            else:
                self.window.ended(exchange, None, "", now)


Run = Callable[..., tuple[list[Exchange], Scripted, bool]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    clock = Clock()
    monkeypatch.setattr("harness.load.window.time", clock)

    def through(
        dispatcher: ClosedLoopDispatcher | OpenLoopDispatcher,
        limits: Limits,
        chore: Callable[[], bool] = lambda: False,
        **script: object,
    ) -> tuple[list[Exchange], Scripted, bool]:
        clock.now = 0
        window = Window(range(9), Dealt([0] * 9), limits)
        carrier = Scripted(window, clock, **script)  # type: ignore[arg-type]  # fields of the script
        ended: list[Exchange] = []
        stopped = window.run(carrier, dispatcher, ended.append, chore)
        assert window.in_flight == 0
        return sorted(ended, key=lambda exchange: exchange.index), carrier, stopped

    return through


def closed(slots: int, count: int) -> ClosedLoopDispatcher:
    return ClosedLoopDispatcher(ClosedLoop(slots), count, 0, Closing(0, None))


def opened(*offsets_ms: int, lasts: int | None = None, **schedule: object) -> OpenLoopDispatcher:
    offsets = np.array(offsets_ms, np.int64) * MS
    schedule_of = OpenLoop(offsets, **schedule)  # type: ignore[arg-type]  # its own fields
    return OpenLoopDispatcher(schedule_of, 0, Closing(0, lasts))


def failures(ended: list[Exchange]) -> list[Outcome | None]:
    return [exchange.failure for exchange in ended]


def test_each_slot_takes_the_next_request_when_its_answer_ended(run: Run) -> None:
    ended, _, stopped = run(closed(2, 5), Limits(1000 * MS, 1000 * MS))
    assert [exchange.sent // MS for exchange in ended] == [0, 0, 10, 10, 20]
    assert failures(ended) == [None] * 5
    assert not stopped


def test_open_arrivals_leave_at_their_times(run: Run) -> None:
    ended, _, _ = run(opened(0, 3, 300), Limits(1000 * MS, 1000 * MS), answer_ns=500 * MS)
    assert [exchange.sent // MS for exchange in ended] == [0, 3, 300]


@pytest.mark.parametrize("connect_ns", [0, 30 * MS])
def test_the_time_limit_counts_from_the_send(run: Run, connect_ns: int) -> None:
    ended, carrier, _ = run(opened(0), Limits(40 * MS, 1000 * MS), connect_ns=connect_ns, answer_ns=NEVER)
    assert failures(ended) == [Outcome.TIMEOUT]
    assert ended[0].end >= connect_ns + 40 * MS
    assert carrier.dropped == [0]


def test_a_request_that_never_leaves_has_no_connection_in_time(run: Run) -> None:
    ended, carrier, _ = run(opened(0), Limits(40 * MS, 1000 * MS), connect_ns=1000 * MS)
    assert (failures(ended), ended[0].error) == ([Outcome.TIMEOUT], "no connection in time")
    assert ended[0].sent == UNKNOWN
    assert carrier.window.sent == 0


def test_a_user_hangs_up_on_the_nanosecond(run: Run) -> None:
    limits = Limits(1000 * MS, 1000 * MS, [7 * MS + 1, UNKNOWN])
    ended, _, _ = run(opened(0, 1), limits, answer_ns=9 * MS)
    assert failures(ended) == [Outcome.ABANDONED, None]
    assert ended[0].end == 7 * MS + 1


def test_a_whole_answer_after_its_time_limit_is_late(run: Run) -> None:
    """The limit falls between two looks of the window, and the answer comes ahead of the second."""
    ended, carrier, _ = run(opened(0), Limits(20 * MS, 1000 * MS), answer_ns=CHORE_NS - 1)
    assert failures(ended) == [Outcome.TIMEOUT]
    assert carrier.dropped == []


def test_an_answer_that_is_too_long_is_that_whatever_else_it_is(run: Run) -> None:
    ended, _, _ = run(opened(0), Limits(20 * MS, 1000 * MS), answer_ns=30 * MS, oversized=True)
    assert failures(ended) == [Outcome.OVERSIZED]


@pytest.mark.parametrize(("drain_ms", "failure"), [(130, None), (60, Outcome.TIMEOUT)])
def test_the_drain_counts_from_the_last_send(run: Run, drain_ms: int, failure: Outcome | None) -> None:
    limits = Limits(1000 * MS, drain_ms * MS)
    ended, _, _ = run(opened(0), limits, connect_ns=drain_ms * MS // 2, answer_ns=120 * MS)
    assert failures(ended) == [failure]


def test_what_a_person_stops_is_cancelled_whether_it_left_or_not(run: Run) -> None:
    held = opened(0, 0, max_in_flight=1)
    ended, carrier, stopped = run(held, Limits(1000 * MS, 1000 * MS), lambda: True, answer_ns=NEVER)
    assert stopped
    assert failures(ended) == [Outcome.CANCELLED] * 2
    assert [exchange.sent for exchange in ended] == [0, UNKNOWN]
    assert carrier.dropped == [0]


def test_what_the_cap_holds_back_is_recorded(run: Run) -> None:
    limits, slow = Limits(1000 * MS, 1000 * MS), {"answer_ns": 100 * MS}
    dropped, _, _ = run(opened(0, 1, max_in_flight=1, over_cap="drop"), limits, **slow)
    held, _, _ = run(opened(0, 1, max_in_flight=1, lasts=50 * MS), limits, **slow)
    assert failures(dropped) == failures(held) == [None, Outcome.DROPPED]
    assert "cap was reached" in dropped[1].error
    assert "until the window closed" in held[1].error


def test_a_request_that_is_sent_again_keeps_its_first_send_and_counts_once(run: Run) -> None:
    window = Window(range(1), Dealt([0]), Limits(1000 * MS, 1000 * MS))
    exchange = Exchange(0, 0)
    window.sent_at(exchange, 5)
    window.sent_at(exchange, 9)
    assert (exchange.sent, exchange.attempts, window.sent) == (5, 2, 1)
    assert exchange.deadline == 5 + 1000 * MS
