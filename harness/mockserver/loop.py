"""An event loop for exact timing: one heap of timed callbacks next to the sockets.

Not asyncio: its timers wake to the millisecond, and uvloop also holds writes back to the end of
an iteration, so that the time noted before a write would not be the time of the write. Here the
sleep is a select() on the poller itself, which the kernel ends to the microsecond.
"""

import ctypes
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count

Callback = Callable[[], None]

PR_SET_TIMERSLACK = 29
SPIN_NS = 300_000  # longest lateness of a wake-up that spinning is to hide
LONGEST_SLEEP_S = 86_400.0  # select() takes less than 300 years
# Between two looks at the sockets: few enough that a request is read soon in a burst of writes.
CALLBACKS_PER_LOOK = 16


class Loop:
    """`precise` spends a core: it polls without sleeping while a callback is due within SPIN_NS."""

    def __init__(self, *, precise: bool = False) -> None:
        self._margin_ns = SPIN_NS if precise else 0
        self._selector = selectors.DefaultSelector()
        self._poll_fd = self._selector.fileno()
        self._timed: list[tuple[int, int, Callback]] = []
        self._order = count()
        self._stopped = False

    def at(self, due_ns: int, callback: Callback) -> None:
        """Calls once, at or after a CLOCK_MONOTONIC time; equal times run in the order they were given."""
        heappush(self._timed, (due_ns, next(self._order), callback))

    def on_readable(self, sock: socket.socket | int, callback: Callback) -> None:
        self._selector.register(sock, selectors.EVENT_READ, (callback, None))

    def on_writable(self, sock: socket.socket, callback: Callback | None) -> None:
        """Besides the readable callback that the socket has; None: no longer."""
        on_readable, _ = self._selector.get_key(sock).data
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if callback else 0)
        self._selector.modify(sock, events, (on_readable, callback))

    def forget(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)

    @contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """`run` returns after any signal that has a handler. Main thread only.

        The handler alone does not end a sleep whose system call begins just after the signal came: Python
        runs it between two of its own instructions, and the next of these comes after the sleep.
        """
        wakes, written = socket.socketpair()
        with wakes, written:
            written.setblocking(False)
            before = signal.set_wakeup_fd(written.fileno())
            self.on_readable(wakes, self.stop)
            try:
                yield
            finally:
                signal.set_wakeup_fd(before)
                self.forget(wakes)

    def stop(self) -> None:
        """Makes `run` return. For callbacks: others do not wake the loop."""
        self._stopped = True

    def run(self) -> None:
        if sys.platform == "linux":  # which otherwise ends every sleep up to 50 µs late, to save wake-ups
            ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        timed = self._timed
        while not self._stopped:
            if timed:
                sleep_ns = timed[0][0] - time.monotonic_ns() - self._margin_ns
                if sleep_ns > 0:
                    select.select((self._poll_fd,), (), (), min(sleep_ns / 1e9, LONGEST_SLEEP_S))
            else:
                select.select((self._poll_fd,), (), ())
            for key, events in self._selector.select(0):
                on_readable, on_writable = key.data
                if events & selectors.EVENT_WRITE and on_writable:
                    on_writable()
                if events & selectors.EVENT_READ:
                    on_readable()
            for _ in range(CALLBACKS_PER_LOOK):
                if not timed or timed[0][0] > time.monotonic_ns():
                    break
                heappop(timed)[2]()
