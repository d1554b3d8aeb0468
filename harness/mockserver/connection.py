"""One client connection: requests in with the time they arrived, writes out at the time they are due."""

import socket
import struct
import time
from collections.abc import Callable, Iterator

from harness.host.clocks import tightest
from harness.host.tls import Secure
from harness.mockserver.ledger import Ledger, Outcome, Record
from harness.mockserver.loop import Loop
from harness.mockserver.script import Then, Write
from harness.mockserver.wire import ProtocolError, Request, error_answer, take_request

READ_BYTES = 64 * 1024
SO_TIMESTAMPNS = 35  # Linux: recvmsg() tells when the kernel received the bytes
_CLOCK_TRIES, _MOMENT_NS = 5, 2_000  # two reads of a clock that are closer are of one moment
LINGER_RESET = struct.pack("ii", 1, 0)  # close() sends RST and drops what was not sent
TIMESPEC = struct.Struct("@qq")


class DiedError(Exception):
    """A `die` fault struck: the process is to end with exit code 1."""


class Connection:
    """`handle` is given each request with this connection; it answers by `play` or `answer`, now or later.

    A client that closes its side, if only for writing, has left.
    """

    def __init__(
        self,
        sock: socket.socket,
        loop: Loop,
        ledger: Ledger,
        handle: Callable[["Connection", Request], None],
        tls: Secure | None = None,
        finishes_abandoned: bool = False,
    ) -> None:
        self.received_ns = 0  # of the last bytes, by the kernel's stamp where it gives one
        self.read_ns = 0
        self._sock = sock
        self._loop = loop
        self._ledger = ledger
        self._handle = handle
        self._tls, self._shaken = tls, tls is None
        self._buffer = bytearray()
        self._busy = False  # a request is being answered; what follows it waits in the buffer
        self._closed = False
        self._finishes_abandoned = finishes_abandoned
        self._writes: Iterator[Write] = iter(())
        self._write = Write(0, b"")
        self._unsent = b""
        self._start_ns = 0
        self._record: Record | None = None
        self._on_end: Callable[[int], None] | None = None
        self._close_after = False
        loop.on_readable(sock, self._readable)

    def answer(self, data: bytes, *, close: bool = False) -> None:
        """A whole answer, at once."""
        self.play(iter((Write(0, data, then=Then.END),)), time.monotonic_ns(), close=close)

    def play(self, writes: Iterator[Write], start_ns: int, *, close: bool = False) -> None:
        """Sends each write at `start_ns` plus its offset, or as soon after as it can."""
        self._writes = writes
        self._start_ns = start_ns
        self._close_after = close
        self._schedule(start_ns)

    def cut(self, data: bytes) -> None:
        """Ends what is played with `data` after the write that is due next."""
        self._writes = iter((Write(0, data, then=Then.END),))

    def expect(self, record: Record, on_end: Callable[[int], None] | None = None) -> None:
        """Keep this record of the answer to come.

        `on_end` is called once with the time, when the answer ended or the client left, even before it began.
        """
        self._record = record
        self._on_end = on_end

    def _readable(self) -> None:
        if self._closed:
            return
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, 64)
        except BlockingIOError:
            return
        except OSError:
            self._close()
            return
        if not data:
            self._close()
            return
        self.read_ns = self.received_ns = time.monotonic_ns()
        for level, kind, stamp in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = TIMESPEC.unpack(stamp)
                # The stamp is wall-clock time: its age is carried over to the monotonic clock.
                now = tightest(time.time_ns, _CLOCK_TRIES, _MOMENT_NS)
                age_ns = now.value_ns - (seconds * 1_000_000_000 + nanoseconds)
                self.received_ns = min(self.read_ns, now.at_ns - max(0, age_ns))
        try:
            self._buffer += self._opened(data)
        except OSError:
            self._close()
            return
        self._next_request()

    def _opened(self, data: bytes) -> bytes:
        if self._tls is None:
            return data
        if self._shaken:
            return self._tls.open(data)
        self._shaken, reply = self._tls.shake(data)
        self._sock.sendall(reply)
        return self._tls.open(b"") if self._shaken else b""  # the request may follow the handshake closely

    def _next_request(self) -> None:
        if self._busy or self._closed:
            return
        try:
            request = take_request(self._buffer)
        except ProtocolError as error:
            self._busy = True
            self.answer(error_answer(400, str(error)), close=True)
            return
        if request:
            self._busy = True
            self._handle(self, request)

    def _schedule(self, now_ns: int) -> None:
        self._write = next(self._writes)
        # Behind schedule, streams take turns instead of each catching up at the cost of the others.
        self._loop.at(max(self._start_ns + self._write.due_ns, now_ns), self._step)

    def _step(self) -> None:
        if self._closed and not (self._finishes_abandoned and self._record):
            return
        write = self._write
        data = write.data if self._tls is None else self._tls.seal(write.data)
        now_ns = time.monotonic_ns()
        try:
            sent = len(data) if self._closed else self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close()
            self._step()  # which goes on where the answer does
            return
        if write.events and (record := self._record):
            due_ns = self._start_ns + write.due_ns
            for _ in range(write.events):
                record.due_ns.append(due_ns)
                record.write_ns.append(now_ns)
            record.tokens += write.tokens
        if sent < len(data):
            self._ledger.blocked_writes += 1
            self._unsent = data[sent:]
            self._loop.on_writable(self._sock, self._drain)
        else:
            self._then(now_ns)

    def _drain(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._close()
            return
        if not self._unsent:
            self._loop.on_writable(self._sock, None)
            self._then(time.monotonic_ns())

    def _then(self, now_ns: int) -> None:
        match self._write.then:
            case Then.MORE:
                self._schedule(now_ns)
            case Then.END:
                self._end(self._record.outcome_when_written() if self._record else "complete")
                self._busy = False
                if self._close_after:
                    self._close()
                elif self._buffer:
                    self._loop.at(now_ns, self._next_request)
            case Then.CLOSE:
                self._end("faulted")
                self._close()
            case Then.RESET:
                self._end("faulted")
                if not self._closed:
                    self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
                self._close()
            case Then.HANG:
                if self._closed:
                    self._end("faulted")
                elif self._record:
                    self._record.outcome = "faulted"  # whenever the client gives up
            case Then.EXIT:
                raise DiedError

    def _end(self, outcome: Outcome) -> None:
        """The request is over; the connection may go on."""
        now_ns = time.monotonic_ns()
        if self._record:
            if self._record.outcome == "open":
                self._record.outcome = outcome
            self._record.ended_ns = now_ns
        on_end, self._record, self._on_end = self._on_end, None, None
        if on_end:
            on_end(now_ns)

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.forget(self._sock)
        self._sock.close()
        goes_on = self._finishes_abandoned and not self._unsent
        if goes_on and self._record and self._record.outcome == "open":  # else it hangs
            self._record.outcome = "aborted"
        else:
            self._end("aborted")
