"""Tasks of a window that ends, on a protocol whose answers end when the test says."""

import asyncio
from collections.abc import Callable

import pytest

from harness.load.balance import Dealt
from harness.load.bounds import Limits
from harness.load.dispatcher import ClosedLoopDispatcher, Closing
from harness.load.exchange import Exchange
from harness.load.job import ClosedLoop
from harness.load.task_carrier import TaskCarrier
from harness.load.window import Window
from harness.records.layout import Outcome

SECOND = 1_000_000_000


class Held:
    """Answers once `answers` is set."""

    def __init__(self) -> None:
        self.connect_ns: list[int] = []
        self.answers = asyncio.Event()

    async def open_ahead(self, count: int) -> str:
        return ""

    async def carry(self, exchange: Exchange, body: bytes, on_send: Callable[[], object]) -> None:
        on_send()
        await self.answers.wait()
        assert exchange.answer is not None
        exchange.answer.take_part(b"whole", exchange.sent + 1)

    async def close(self) -> None: ...


@pytest.mark.parametrize("answered", [True, False])
def test_an_answer_that_ends_while_the_window_is_stopped_is_recorded_once(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.load.window.CHORE_NS", 0)
    held, window = Held(), Window([7], Dealt([0]), Limits(SECOND, SECOND))
    carrier = TaskCarrier(held, [b"{}"], 1 << 20, window)
    ended: list[Exchange] = []

    def stop_once_sent() -> bool:
        if window.sent and answered:
            held.answers.set()  # the task goes on one step after the one that ends the window
        return window.sent == 1

    try:
        assert window.run(
            carrier, ClosedLoopDispatcher(ClosedLoop(1), 1, 0, Closing(0, None)), ended.append, stop_once_sent
        )
    finally:
        carrier.close()
    (exchange,) = ended
    assert exchange.failure is (None if answered else Outcome.CANCELLED)
    assert window.in_flight == 0


class Noted(Window):
    """Keeps when each of its steps wants the next."""

    def __init__(self, limits: Limits) -> None:
        super().__init__([7], Dealt([0]), limits)
        self.wakes: list[int | None] = []

    def step(self, now: int) -> int | None:
        self.wakes.append(super().step(now))
        return self.wakes[-1]


def test_the_window_is_asked_again_once_a_request_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user hangs up before the time that the step before the send named."""
    monkeypatch.setattr("harness.load.window.CHORE_NS", SECOND)
    window = Noted(Limits(10 * SECOND, 10 * SECOND, [SECOND // 200]))
    carrier, ended = TaskCarrier(Held(), [b"{}"], 1 << 20, window), list[Exchange]()
    try:
        window.run(
            carrier, ClosedLoopDispatcher(ClosedLoop(1), 1, 0, Closing(0, None)), ended.append, lambda: False
        )
    finally:
        carrier.close()
    (exchange,) = ended
    assert exchange.failure is Outcome.ABANDONED
    assert exchange.deadline in window.wakes
