import os
import signal
import socket
import time
from functools import partial

import pytest

from harness.mockserver.loop import CALLBACKS_PER_LOOK, Loop


@pytest.mark.parametrize("precise", [False, True])
def test_callbacks_run_in_order_of_time_and_never_early(precise: bool) -> None:
    loop = Loop(precise=precise)
    base_ns = time.monotonic_ns()
    ran: list[tuple[str, bool]] = []

    def note(name: str, due_ns: int) -> None:
        ran.append((name, time.monotonic_ns() >= due_ns))

    for name, offset_ns in (("third", 2_000_000), ("first", -5), ("second", -5), ("last", 3_000_000)):
        loop.at(base_ns + offset_ns, partial(note, name, base_ns + offset_ns))
    loop.at(base_ns + 3_000_000, loop.stop)
    loop.run()
    assert ran == [("first", True), ("second", True), ("third", True), ("last", True)]


def test_a_request_is_read_amid_a_long_burst_of_writes() -> None:
    loop = Loop()
    ours, theirs = socket.socketpair()
    order: list[str] = []

    def readable() -> None:
        order.append(ours.recv(1).decode())

    with ours, theirs:
        loop.on_readable(ours, readable)
        loop.at(0, lambda: order.append(str(theirs.send(b"x"))))
        for _ in range(3 * CALLBACKS_PER_LOOK):
            loop.at(0, partial(order.append, "."))
        loop.at(1, loop.stop)
        loop.run()
    assert order.index("x") == CALLBACKS_PER_LOOK


def test_a_socket_is_read_while_the_next_callback_is_centuries_away() -> None:
    loop = Loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop.at(10**21, lambda: pytest.fail("too early"))
        loop.on_readable(ours, loop.stop)
        theirs.send(b"x")
        loop.run()


def test_writable_beside_readable_until_it_is_dropped() -> None:
    loop = Loop()
    ours, theirs = socket.socketpair()
    seen: list[str] = []

    def writable() -> None:
        seen.append("writable")
        loop.on_writable(ours, None)
        theirs.send(b"x")

    def readable() -> None:
        seen.append("readable")
        loop.stop()

    with ours, theirs:
        loop.on_readable(ours, readable)
        loop.on_writable(ours, writable)
        loop.run()
    assert seen == ["writable", "readable"]


@pytest.fixture
def signalled():
    """A loop that signals end, and a signal whose handler does nothing."""
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    loop = Loop()
    with loop.ended_by_signals():
        yield loop
    signal.signal(signal.SIGTERM, handler)


def slept_too_long():
    raise AssertionError("the signal did not end the loop")


def test_a_signal_whose_handler_has_run_ends_the_next_sleep(signalled):
    os.kill(os.getpid(), signal.SIGTERM)
    signalled.at(time.monotonic_ns() + 5_000_000_000, slept_too_long)
    signalled.run()


def test_a_signal_without_a_handler_of_its_own_is_nothing(signalled):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
    calls = []
    signalled.at(time.monotonic_ns(), lambda: (calls.append("after it"), signalled.stop()))
    signalled.run()
    assert calls == ["after it"]
