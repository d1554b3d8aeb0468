"""A carrier over this worker's own sockets, which keeps bytes and stamps of HTTP/1.1.

Nothing is decoded while streams run beyond finding the end of an answer; finished answers are finalized
when no socket and no send needs the process.
"""

import select
import time
from collections.abc import Collection, Sequence
from typing import Any

from harness.host.tls import Secure
from harness.load.carrier import Counters
from harness.load.connection import Connection, failure_of, transmit, transmit_rest, unopened
from harness.load.connection_pool import ConnectionPool
from harness.load.exchange import Exchange
from harness.load.failures import CLOSED_EARLY, closed_after_send
from harness.load.http1 import Answer
from harness.load.pacing import choose_tick
from harness.load.socket_checks import BATCH, SocketChecks
from harness.load.stamps import CONTROL_BYTES, StampClock, bound, pack_realtime
from harness.load.tcp_info import read_tcp_info
from harness.load.window import Window
from harness.load.wire import Wire
from harness.records.layout import UNKNOWN, Outcome

_ADJUST_NS = 50_000_000  # between two choices of the tick
_READ_BYTES = 65536
_MILLISECOND_NS = 1_000_000


class SocketCarrier:
    """`wires`: one per replica. Without a `clock`, stamps are taken at the read, so reads must be prompt."""

    sends_at_once = 16

    def __init__(
        self,
        wires: Sequence[Wire],
        pool: ConnectionPool,
        clock: StampClock | None,
        answer_bytes: int,
        window: Window,
    ) -> None:
        self.counters = Counters(pool.connect_ns)
        self.open_ahead = pool.open_ahead
        self.close = pool.close
        self._wires, self._pool, self._clock = wires, pool, clock
        self._answer_bytes, self._window = answer_bytes, window
        self._looks = SocketChecks(pool.poller)
        self._buffer = bytearray(_READ_BYTES)
        self._reads = self._tick = self._adjusted = 0

    def run(self) -> None:
        step = self._window.step
        while (wake := step(now := time.monotonic_ns())) is not None:
            if now >= self._adjusted + _ADJUST_NS:
                self._adjust(now)
            self._read(self._wait(now, wake))

    def drop(self, exchanges: Collection[Exchange]) -> None:
        if self._clock is not None:
            self._clock.sample()  # stamps up to now lie between two samples
        dropped = {exchange.index for exchange in exchanges}
        for connection in self._pool.busy():
            assert connection.exchange is not None
            if connection.exchange.index in dropped:
                self._leave(connection)

    # -- waiting -------------------------------------------------------------------------------------

    def _adjust(self, now: int) -> None:
        if self._clock is not None:
            self._clock.sample()
            self._tick = choose_tick(self._reads, now - self._adjusted, max(self._window.in_flight, 1))
            self.counters.longest_tick_ns = max(self.counters.longest_tick_ns, self._tick)
        self._reads, self._adjusted = 0, now

    def _wait(self, now: int, wake: int) -> list[tuple[int, int]]:
        """Socket events, at `wake` at the latest, or after one tick."""
        window, poll = self._window, self._looks.poll
        events = poll()
        if len(events) >= BATCH:
            return events
        if self._tick:
            self._read(events)
            wake = min(wake, now + self._tick, window.next_due(now))
            while window.finished and time.monotonic_ns() < wake:
                window.finalize_one()
            self._sleep_until(wake)
            return poll()
        if window.finished and not events:
            window.finalize_one()
        pause = wake - time.monotonic_ns()
        if events or window.finished or pause <= 0:
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

    def send(self, exchange: Exchange) -> None:
        connection = self._pool.take_idle(exchange.replica)
        if connection is None:
            self._open_for(exchange)
        else:
            exchange.connect = 0
            self._transmit(connection, exchange)

    def _open_for(self, exchange: Exchange) -> None:
        try:
            self._pool.open(exchange.replica).exchange = exchange
        except OSError as error:
            self._window.ended(exchange, unopened(error), str(error), time.monotonic_ns())

    def _transmit(self, connection: Connection, exchange: Exchange) -> None:
        head, body = self._wires[exchange.replica].request(exchange.index)
        connection.exchange, connection.answer = exchange, Answer(self._answer_bytes)
        if connection.before is None:  # else as the answer before left it: nothing was sent since
            connection.before = read_tcp_info(connection.sock)
        now = time.monotonic_ns()
        transmit(connection, self._pool.poller, head, body)
        if not connection.refused:
            self._window.sent_at(exchange, now)

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
        self._reads += reads
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
        if answer.complete:
            self._finish(connection, None, "", end)
        else:
            self._finish(connection, Outcome.MALFORMED, answer.problem, end)

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
            error = closed_after_send(outcome, error)
        if outcome is Outcome.TRUNCATED and answer.status and not answer.framed():
            self._finish(connection, None, "", time.monotonic_ns())
        else:
            self._finish(connection, outcome, error, time.monotonic_ns())

    # -- ends ----------------------------------------------------------------------------------------

    def _finish(self, connection: Connection, failure: Outcome | None, error: str, end: int) -> None:
        exchange = self._leave(connection)
        self._looks.is_read()
        self._window.ended(exchange, failure, error, end)

    def _leave(self, connection: Connection) -> Exchange:
        """Takes the exchange off its connection, which another may use if the answer allows it."""
        exchange, answer = connection.exchange, connection.answer
        assert exchange is not None
        exchange.answer = answer
        connection.exchange = connection.answer = None
        connection.count_loss(exchange)
        if answer is not None and answer.reusable() and connection.rest is None:
            connection.answered = True
            self._pool.release(connection)
        else:
            self._pool.discard(connection)
        return exchange
