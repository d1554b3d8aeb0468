"""The timed window of one worker: a loop over its sockets that sends on time and keeps bytes and stamps.

Nothing is decoded while streams run beyond finding the end of an answer; finished answers are finalized
when no socket and no send needs the loop.
"""

import select
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from harness.host.tls import Secure
from harness.load.balance import Balancer
from harness.load.bounds import Limits
from harness.load.connection import Connection, failure_of, transmit, transmit_rest, unopened
from harness.load.connection_pool import ConnectionPool
from harness.load.dispatcher import NEVER, Dispatcher
from harness.load.failures import (
    AT_CAP,
    CLOSED_AFTER_SEND,
    CLOSED_EARLY,
    DRAIN_OVER,
    NEVER_SENT,
    NO_CONNECTION,
    STOPPED,
)
from harness.load.finalize import Exchange
from harness.load.http1 import Answer
from harness.load.pacing import choose_tick
from harness.load.socket_checks import BATCH, SocketChecks
from harness.load.stamps import CONTROL_BYTES, StampClock, bound, pack_realtime
from harness.load.tcp_info import read_tcp_info
from harness.load.wire import Wire
from harness.records.layout import UNKNOWN, Outcome

CHORE_NS = 50_000_000
_SENDS = 16  # requests between two looks at the sockets
_READ_BYTES = 65536
_BACKLOG_BYTES = 64 << 20  # of finished answers kept for an idle moment
_MILLISECOND_NS = 1_000_000


@dataclass(slots=True)
class Counters:
    """The loop's own figures."""

    sent: int = 0
    in_flight: int = 0
    reads: int = 0
    unstamped_reads: int = 0
    longest_tick_ns: int = 0
    loop_lag_ns: "array[int]" = field(default_factory=lambda: array("q"))


class EventLoop:
    """`wires`: one per replica. Without a `clock`, stamps are taken at the read, so reads must be prompt."""

    def __init__(
        self,
        wires: Sequence[Wire],
        pool: ConnectionPool,
        balancer: Balancer,
        clock: StampClock | None,
        limits: Limits,
    ) -> None:
        self.counters = Counters()
        self._wires, self._clock, self._limits = wires, clock, limits
        self._pool, self._balancer = pool, balancer
        self._looks = SocketChecks(pool.poller)
        self.connect_ns = self._pool.connect_ns
        self.open_ahead = self._pool.open_ahead
        self._finished: deque[Exchange] = deque()
        self._finished_bytes = 0
        self._tick = 0
        self._hang_ups = [NEVER]  # heap of the times when users do; most answers have come before
        self._last_begun = 0  # monotonic ns, when a connection was last opened for a request, or one sent
        self._buffer = bytearray(_READ_BYTES)

    def close(self) -> None:
        self._pool.close()

    def run(
        self, dispatcher: Dispatcher, finalize: Callable[[Exchange], object], chore: Callable[[], bool]
    ) -> bool:
        """Returns once every request that became due is finalized; True if the chore ended the window.

        `chore` is called every CHORE_NS and ends the window by returning True.
        """
        self._dispatcher, self._finalize = dispatcher, finalize
        self._choose_tick(0, CHORE_NS)
        now = time.monotonic_ns()
        self._last_begun, next_chore, reads_before = now, now + CHORE_NS, 0
        counters = self.counters
        stopped = False
        while True:
            now = time.monotonic_ns()
            if now >= next_chore:
                elapsed, next_chore = now - next_chore + CHORE_NS, now + CHORE_NS
                self._choose_tick(counters.reads - reads_before, elapsed)
                reads_before = counters.reads
                self._end_overdue(now)
                if stopped := chore():
                    break
            if self._hang_ups[0] <= now:
                self._end_overdue(now)
            self._send_due(now)
            if not dispatcher.has_more(now, counters.in_flight) and (
                not counters.in_flight or now > self._last_begun + self._limits.drain_timeout_ns
            ):
                break
            due = dispatcher.next_due(now, counters.in_flight)
            self._read(self._wait(now, min(next_chore, due, self._hang_ups[0])))
        self._end_all(time.monotonic_ns(), stopped=stopped)
        return stopped

    # -- waiting -------------------------------------------------------------------------------------

    def _choose_tick(self, reads: int, elapsed: int) -> None:
        if self._clock is not None:
            self._clock.sample()
            self._tick = choose_tick(reads, elapsed, max(self.counters.in_flight, 1))
            self.counters.longest_tick_ns = max(self.counters.longest_tick_ns, self._tick)

    def _wait(self, now: int, wake: int) -> list[tuple[int, int]]:
        """Socket events, at `wake` at the latest, or after one tick."""
        while self._finished_bytes > _BACKLOG_BYTES:
            self._finalize_one()
        poll = self._looks.poll
        events = poll()
        if len(events) >= BATCH:
            return events
        if self._tick:
            self._read(events)
            wake = min(wake, now + self._tick, self._dispatcher.next_due(now, self.counters.in_flight))
            while self._finished and time.monotonic_ns() < wake:
                self._finalize_one()
            self._sleep_until(wake)
            return poll()
        if self._finished and not events:
            self._finalize_one()
        pause = wake - time.monotonic_ns()
        if events or self._finished or pause <= 0:
            return events
        if pause >= _MILLISECOND_NS:
            pause -= pause % _MILLISECOND_NS  # epoll rounds up to milliseconds: never past what is due
            planned = time.monotonic_ns() + pause
            events = poll(pause / 1e9)
            if not events:
                self.counters.loop_lag_ns.append(max(0, time.monotonic_ns() - planned))
            return events
        if self._clock is not None:  # the kernel stamps what arrives while we sleep
            self._sleep_until(wake)
        return poll()

    def _sleep_until(self, wake: int) -> None:
        pause = wake - time.monotonic_ns()
        if pause > 0:
            time.sleep(pause / 1e9)
            self.counters.loop_lag_ns.append(max(0, time.monotonic_ns() - wake))

    # -- sending -------------------------------------------------------------------------------------

    def _send_due(self, now: int) -> None:
        dispatcher, counters = self._dispatcher, self.counters
        for _ in range(_SENDS):
            request = dispatcher.take(now, counters.in_flight)
            if request is None:
                break
            counters.in_flight += 1
            exchange = self._exchange(*request)
            exchange.replica = self._balancer.choose(exchange.index)
            connection = self._pool.take_idle(exchange.replica)
            if connection is None:
                self._open_for(exchange)
            else:
                exchange.connect = 0
                self._transmit(connection, exchange)
            now = time.monotonic_ns()
        self._give_up(dispatcher.dropped, Outcome.DROPPED, AT_CAP)
        dispatcher.dropped.clear()

    def _exchange(self, intended: int, index: int) -> Exchange:
        return Exchange(self._wires[0].seqs[index], intended, index)

    def _open_for(self, exchange: Exchange) -> None:
        try:
            connection = self._pool.open(exchange.replica)
        except OSError as error:
            self._end(exchange, unopened(error), str(error), time.monotonic_ns())
            return
        connection.exchange = exchange
        self._set_deadline(connection, exchange)

    def _set_deadline(self, connection: Connection, exchange: Exchange) -> None:
        begun, limit = connection.opened, self._limits.request_timeout_ns
        if exchange.sent != UNKNOWN:
            begun, (limit, _) = exchange.sent, self._limits.after_send(exchange.index)
        self._last_begun = max(self._last_begun, begun)  # one that is sent again began before
        connection.deadline = begun + limit
        if limit != self._limits.request_timeout_ns:
            heappush(self._hang_ups, connection.deadline)

    def _transmit(self, connection: Connection, exchange: Exchange) -> None:
        head, body = self._wires[exchange.replica].request(exchange.index)
        connection.exchange, connection.answer = exchange, Answer(self._limits.answer_bytes)
        if connection.before is None:  # else as the answer before left it: nothing was sent since
            connection.before = read_tcp_info(connection.sock)
        now = time.monotonic_ns()
        transmit(connection, self._pool.poller, head, body)
        if not connection.refused:
            exchange.attempts += 1
            if exchange.sent == UNKNOWN:
                self.counters.sent += 1
                exchange.sent = now
        self._set_deadline(connection, exchange)

    # -- reading -------------------------------------------------------------------------------------

    def _read(self, events: list[tuple[int, int]]) -> None:
        connections, buffer = self._pool.connections, self._buffer
        kernel, view, buffers = self._clock is not None, memoryview(buffer), [buffer]
        look = self._looks.current if kernel else None
        drained, reads = True, 0
        for fd, mask in events:
            connection = connections.get(fd)
            if connection is None:  # closed by an earlier event of this batch
                continue
            answer = connection.answer
            if answer is None or mask & select.POLLOUT:
                drained = False
                self._on_unusual(connection)
                continue
            try:
                if kernel:
                    size, control, _, _ = connection.receive(buffers, CONTROL_BYTES)
                    stamp: Any = control[0][2] if control else self._unstamped()
                else:
                    size = connection.receive(buffer)
                    stamp = time.monotonic_ns()
            except BlockingIOError:
                continue
            except OSError as error:
                self._on_lost(connection, failure_of(error), str(error))
                continue
            if not size:
                self._on_lost(connection, *connection.loss())
                continue
            reads += 1
            if size == _READ_BYTES:
                drained = False
            if connection.tls is not None:
                self._read_sealed(connection, connection.tls, view[:size], stamp)
            elif answer.take(view[:size], stamp, look):
                self._answered(connection, answer)
        self.counters.reads += reads
        if events:
            self._looks.is_read()
            if drained:
                self._looks.emptied()

    def _read_sealed(self, connection: Connection, tls: Secure, data: memoryview, stamp: Any) -> None:
        assert connection.answer is not None
        try:
            plain = tls.open(data)
        except OSError as error:
            self._on_lost(connection, Outcome.MALFORMED, str(error))
            return
        if plain and connection.answer.take(plain, stamp, self._looks.current if self._clock else None):
            self._answered(connection, connection.answer)
        elif tls.closed:
            self._on_lost(connection, Outcome.TRUNCATED, CLOSED_EARLY)

    def _answered(self, connection: Connection, answer: Answer) -> None:
        assert connection.exchange is not None
        end = self._arrival(answer, connection.exchange.sent)
        if answer.oversized:
            self._finish(connection, Outcome.OVERSIZED, answer.problem, end)
        elif not answer.complete:
            self._finish(connection, Outcome.MALFORMED, answer.problem, end)
        elif end > connection.deadline:
            self._finish(connection, *self._limits.after_send(connection.exchange.index)[1], end)
        else:
            self._finish(connection, None, "", end)

    def _unstamped(self) -> bytes:
        self.counters.unstamped_reads += 1
        return pack_realtime()

    def _arrival(self, answer: Answer, sent: int) -> int:
        stamp = answer.stamps[-1]
        if self._clock is None:
            return int(stamp)
        return bound(self._clock.to_monotonic(stamp), self._looks.current, sent, time.monotonic_ns())

    def _on_unusual(self, connection: Connection) -> None:
        """Handles a connection made or refused, room for the rest of a request, or data while idle."""
        if connection.rest is not None:
            transmit_rest(connection, self._pool.poller)
        elif connection.exchange is None:  # nothing is due here but the close of a server tired of waiting
            if not connection.still_open():
                self._pool.discard_closed(connection)
        elif connection.answer is None:
            exchange = connection.exchange
            try:
                if not self._pool.finish_open(connection):
                    return
            except OSError as error:
                self._finish(connection, unopened(error), str(error), time.monotonic_ns())
                return
            if exchange.sent == UNKNOWN:
                exchange.connect = time.monotonic_ns() - connection.opened
            self._transmit(connection, exchange)

    def _on_lost(self, connection: Connection, outcome: Outcome, error: str) -> None:
        """Handles the close or reset of a connection that carries a request."""
        exchange, answer = connection.exchange, connection.answer
        assert exchange is not None
        assert answer is not None
        if not answer.stamps:
            self._pool.learn_from(connection)
            closed = connection.refused or outcome is Outcome.TRUNCATED
            if connection.warm and closed and connection.surely_unread():
                answer.close()
                connection.count_loss(exchange)
                self._pool.discard(connection)
                self._open_for(exchange)
                return
            error = CLOSED_AFTER_SEND if outcome is Outcome.TRUNCATED else f"{CLOSED_AFTER_SEND}: {error}"
        if outcome is Outcome.TRUNCATED and answer.status and not answer.framed():
            self._finish(connection, None, "", time.monotonic_ns())
        else:
            self._finish(connection, outcome, error, time.monotonic_ns())

    # -- ends ----------------------------------------------------------------------------------------

    def _finish(self, connection: Connection, failure: Outcome | None, error: str, end: int) -> None:
        exchange, answer = connection.exchange, connection.answer
        assert exchange is not None
        exchange.answer = answer
        connection.exchange = connection.answer = None
        connection.count_loss(exchange)
        if answer is not None:
            answer.close()
        if answer is not None and answer.reusable() and connection.rest is None:
            connection.answered = True
            self._pool.release(connection)
        else:
            self._pool.discard(connection)
        self._end(exchange, failure, error, end)

    def _end(self, exchange: Exchange, failure: Outcome | None, error: str, end: int) -> None:
        exchange.failure, exchange.error, exchange.end = failure, error, end
        self.counters.in_flight -= 1
        self._balancer.ended(exchange.replica)
        if self._dispatcher.waits_for_answers:
            self._looks.is_read()
            self._finalize(exchange)
            return
        self._finished.append(exchange)
        self._finished_bytes += exchange.answer.wire_bytes if exchange.answer is not None else 0
        self._dispatcher.freed(exchange.index, exchange.sent, end)

    def _finalize_one(self) -> None:
        exchange = self._finished.popleft()
        self._finished_bytes -= exchange.answer.wire_bytes if exchange.answer is not None else 0
        self._finalize(exchange)

    def _end_overdue(self, now: int) -> None:
        while self._hang_ups[0] <= now:
            heappop(self._hang_ups)
        for connection in self._pool.busy():
            if connection.deadline <= now:
                exchange = connection.exchange
                assert exchange is not None
                _, late = self._limits.after_send(exchange.index)
                ended = (Outcome.TIMEOUT, NO_CONNECTION) if exchange.sent == UNKNOWN else late
                self._finish(connection, *ended, now)

    def _end_all(self, now: int, *, stopped: bool) -> None:
        """Awaits what is still open when the window closes; cancels it only if a person stops the run."""
        if self._clock is not None:
            self._clock.sample()
        open_end = (Outcome.CANCELLED, STOPPED) if stopped else (Outcome.TIMEOUT, DRAIN_OVER)
        for connection in self._pool.busy():
            self._finish(connection, *open_end, now)
        unsent_end = (Outcome.CANCELLED, STOPPED) if stopped else (Outcome.DROPPED, NEVER_SENT)
        self._give_up(self._dispatcher.overdue(now), *unsent_end)
        while self._finished:
            self._finalize_one()

    def _give_up(self, requests: list[tuple[int, int]], outcome: Outcome, error: str) -> None:
        """Records requests that were never sent."""
        for request in requests:
            exchange = self._exchange(*request)
            exchange.end, exchange.failure, exchange.error = time.monotonic_ns(), outcome, error
            self._finalize(exchange)
