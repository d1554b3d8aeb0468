"""One HTTP/2 connection. h2 checks the frames; this decides what they may cost and which requests they end.

Frames reach h2 one at a time: where it refuses one, all that came before it has had its effect.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from harness.load.connection import failure_of
from harness.load.failures import CLOSED_AFTER_SEND, CLOSED_EARLY
from harness.load.http1 import Answer
from harness.records.layout import Outcome

Headers = Sequence[tuple[bytes, bytes]]

_READ_BYTES = 32_768  # of frames of 8 bytes, h2 takes 40 ms for so many
_FRAME_HEAD_BYTES = 9
_FRAME_BYTES = 16_384  # largest payload, as announced
_DATA, _HEADERS, _RST_STREAM, _GOAWAY = 0, 1, 3, 7
_WINDOW_BYTES = 1 << 24
_CHUNK_BYTES = 65_536
_UNSENT_BYTES = 1 << 20  # of replies that the server does not read
# Each frame costs one unit of credit. Requests, pieces of them, and DATA earn some: by DATA of 8 bytes a
# server loses nothing, so that it may send each line of an event in a frame of its own.
_CREDIT = 4096
_EARNED = 16
_BYTES_PER_CREDIT = 8
_MOST_CREDIT = 1 << 16
_CONFIG = h2.config.H2Configuration(validate_inbound_headers=False, header_encoding=None)


class Failure(NamedTuple):
    outcome: Outcome
    error: str


class FloodError(Exception):
    """The server sends frames without end that carry next to nothing."""


class Stream:
    """One request and its answer. `ended` becomes None where the answer is whole or too long."""

    __slots__ = ("answer", "body", "ended", "id")

    def __init__(self, stream_id: int, answer: Answer, body: bytes) -> None:
        self.id, self.answer = stream_id, answer
        self.body = memoryview(body)  # what was not sent yet
        self.ended: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()


class Http2Connection(asyncio.BufferedProtocol):
    """Usable once `settled` is done: None where the server sent its settings, else why it did not.

    `on_lost` is called once, when the connection carries nothing any more.
    """

    def __init__(self, on_lost: Callable[["Http2Connection"], object], *, reuse: bool) -> None:
        self.settled: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        self._on_lost, self._reuse = on_lost, reuse
        self._h2 = h2.connection.H2Connection(_CONFIG)
        self._transport: asyncio.Transport | None = None
        self._buffer, self._filled = bytearray(_READ_BYTES), 0
        self._streams: dict[int, Stream] = {}
        self._newest = 0  # the highest number of a stream so far
        self.lost: Failure | None = None
        self._retired = self._paused = False
        self._credit = _CREDIT

    # -- what a request does -------------------------------------------------------------------------

    def room(self) -> int:
        """How many more requests may begin on it now."""
        usable = self.settled.done() and not self._retired and not self.lost
        most = self._h2.remote_settings.max_concurrent_streams if self._reuse else 1
        return max(0, most - len(self._streams)) if usable else 0

    def problem(self) -> str:
        """Why no request is on it and none may begin; "" where that is not so."""
        if self.lost is not None:
            return self.lost.error
        return "" if self._streams or self.room() else "the server allows no requests on a connection"

    def begin(self, headers: Headers, body: bytes, answer: Answer) -> Stream:
        """Sends a request, or as much of it as the server takes now. Raises h2's errors."""
        stream = Stream(self._h2.get_next_available_stream_id(), answer, body)
        self._newest = stream.id
        self._retired = not self._reuse
        self._h2.send_headers(stream.id, headers, end_stream=not body)
        self._h2.increment_flow_control_window(_WINDOW_BYTES, stream.id)
        self._streams[stream.id] = stream
        self._earn()
        self._guarded(self._pump)
        return stream

    def abandon(self, stream: Stream) -> None:
        """Ends a request that waits for its answer; others on this connection go on, new ones may not begin.

        Nobody knows whether a connection that left one request without an answer serves the next.
        """
        if stream.id in self._streams:
            self._retired = True
            self._end(stream, None, h2.errors.ErrorCodes.CANCEL)
            self._flush()

    def close(self) -> None:
        """At once, whatever the server does."""
        self._lose(Failure(Outcome.RESET, "the connection was closed here"))

    # -- what asyncio calls --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self._h2.local_settings = h2.settings.Settings(
            initial_values={
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: self._h2.DEFAULT_MAX_HEADER_LIST_SIZE,
            }
        )
        del self._h2.local_settings[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL]  # some servers balk
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW_BYTES)
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, OSError):
            self._lose(Failure(failure_of(error), str(error)))
        else:
            self._lose(Failure(Outcome.TRUNCATED, CLOSED_EARLY))

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._guarded(self._pump)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.lost:
            self._filled = 0
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, size: int) -> None:
        stamp = time.monotonic_ns()
        self._filled += size
        touched: dict[Stream, None] = {}
        self._guarded(lambda: self._take_frames(touched))
        for stream in touched:
            stream.answer.read_ended(stamp)
            if stream.answer.oversized and stream.id in self._streams:
                self._retired = True
                self._end(stream, None, h2.errors.ErrorCodes.CANCEL)
        self._guarded(self._pump)

    # -- frames --------------------------------------------------------------------------------------

    def _guarded(self, step: Callable[[], object]) -> None:
        """Whatever a step raises ends this connection, and the requests on it, and nothing else."""
        if self.lost:
            return
        try:
            step()
        except h2.exceptions.DenialOfServiceError as error:  # header lists past the announced limit
            self._lose(Failure(Outcome.OVERSIZED, f"the head or trailer of an answer is too long: {error}"))
        except Exception as error:
            self._lose(Failure(Outcome.MALFORMED, f"not HTTP/2: {error or type(error).__name__}"))

    def _take_frames(self, touched: dict[Stream, None]) -> None:
        begin, buffer = 0, self._buffer
        while self._filled - begin >= _FRAME_HEAD_BYTES and not self.lost:
            length = int.from_bytes(buffer[begin : begin + 3])
            if length > _FRAME_BYTES:
                raise h2.exceptions.FrameTooLargeError(
                    f"a frame of {length} bytes, where {_FRAME_BYTES} are the most"
                )
            end = begin + _FRAME_HEAD_BYTES + length
            if end > self._filled:
                break
            self._take_frame(bytes(buffer[begin:end]), touched)
            begin = end
        self._filled -= begin
        buffer[: self._filled] = buffer[begin : begin + self._filled]

    def _take_frame(self, frame: bytes, touched: dict[Stream, None]) -> None:
        self._credit -= 1
        if self._credit < 0:
            raise FloodError("the server floods the connection with frames that carry next to nothing")
        number, kind = int.from_bytes(frame[5:9]) & 0x7FFFFFFF, frame[3]
        if kind in (_DATA, _HEADERS, _RST_STREAM) and (number % 2 == 0 or number > self._newest):
            raise h2.exceptions.ProtocolError(f"stream {number} belongs to no request")  # h2 ignores some
        stream = self._streams.get(number)
        if stream is not None:
            touched[stream] = None
            stream.answer.wire_bytes += len(frame)
        if kind == _GOAWAY:  # h2 would take no frame after it, and the server may finish what it began
            self._take_goaway(frame)
            return
        for event in self._h2.receive_data(frame):
            self._take_event(event)

    def _take_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RemoteSettingsChanged):
            if not self.settled.done():
                self.settled.set_result(None)
            return
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if isinstance(event, h2.events.DataReceived):
            assert event.flow_controlled_length is not None
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id or 0)
            if stream is not None and event.data:
                self._earn(min(len(event.data) // _BYTES_PER_CREDIT, _EARNED))
                stream.answer.on_body(event.data)
        elif stream is None:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            self._take_head(stream, event.headers or [])
        elif isinstance(event, h2.events.StreamEnded):
            stream.answer.complete_parts()
            self._end(stream, None)
        elif isinstance(event, h2.events.StreamReset):
            code = event.error_code
            name = code.name if isinstance(code, h2.errors.ErrorCodes) else f"code {code}"
            if event.remote_reset:
                failure = Failure(Outcome.RESET, f"the server reset the stream: {name}")
            else:
                failure = Failure(Outcome.MALFORMED, f"not HTTP/2: {name}")
            self._end(stream, failure)

    def _take_head(self, stream: Stream, headers: Sequence[tuple[bytes, bytes]]) -> None:
        pseudo = [(name, value) for name, value in headers if name.startswith(b":")]
        status = pseudo[0][1] if [name for name, _ in pseudo] == [b":status"] else b""
        if len(status) != 3 or not status.isdigit() or status < b"200":
            shown = b", ".join(b"%b: %b" % field for field in pseudo).decode("latin-1") or "none"
            failure = Failure(Outcome.MALFORMED, f"not HTTP/2: the answer needs one :status, it has {shown}")
            self._end(stream, failure, h2.errors.ErrorCodes.PROTOCOL_ERROR)
            return
        for name, value in headers[1:]:
            stream.answer.on_header(name, value)
        stream.answer.head_ended(int(status))

    def _take_goaway(self, frame: bytes) -> None:
        """No request may begin any more; those that the server says it took go on."""
        if len(frame) < _FRAME_HEAD_BYTES + 8 or frame[5:9] != bytes(4):
            raise h2.exceptions.ProtocolError("a GOAWAY frame that is none")
        self._retired = True
        last, code = int.from_bytes(frame[9:13]) & 0x7FFFFFFF, int.from_bytes(frame[13:17])
        name = h2.errors.ErrorCodes(code).name if code in list(h2.errors.ErrorCodes) else f"code {code}"
        said = frame[17:217].decode("utf-8", "replace")
        failure = Failure(Outcome.RESET, f"the server closed the connection: {name} {said}".rstrip())
        for stream in list(self._streams.values()):
            if code or stream.id > last:
                self._end(stream, failure)
        if not self._streams:
            self._lose(failure)

    # -- sending -------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Sends what the server's windows and the socket take now."""
        for stream in [stream for stream in self._streams.values() if stream.body]:
            while stream.body and not self._paused and not self.lost:
                window = self._h2.local_flow_control_window(stream.id)
                size = min(len(stream.body), window, self._h2.max_outbound_frame_size, _CHUNK_BYTES)
                if size <= 0:
                    break
                chunk, stream.body = bytes(stream.body[:size]), stream.body[size:]
                self._h2.send_data(stream.id, chunk, end_stream=not stream.body)
                if not stream.body or size >= 1024:  # else the server asks for it in crumbs
                    self._earn()
                self._flush()
        self._flush()

    def _flush(self) -> None:
        if self._transport is None or self.lost:
            return
        if data := self._h2.data_to_send():
            self._transport.write(data)
        if self._transport.get_write_buffer_size() > _UNSENT_BYTES:
            self._lose(Failure(Outcome.MALFORMED, "the server asks, and does not read replies"))

    def _earn(self, credit: int = _EARNED) -> None:
        self._credit = min(self._credit + credit, _MOST_CREDIT)

    # -- ends ----------------------------------------------------------------------------------------

    def _end(self, stream: Stream, failure: Failure | None, code: h2.errors.ErrorCodes | None = None) -> None:
        """Ends one request; the server hears of it where it has not ended it itself."""
        del self._streams[stream.id]
        if code is None and failure is None and stream.body:
            code = h2.errors.ErrorCodes.NO_ERROR  # answered before it had read the request
        if code is not None:
            with suppress(h2.exceptions.ProtocolError):  # it is closed already
                self._h2.reset_stream(stream.id, code)
        if not stream.ended.done():
            stream.ended.set_result(failure)
        if self._retired and not self._streams:
            self._flush()
            self._lose(Failure(Outcome.TRUNCATED, CLOSED_EARLY))

    def _lose(self, failure: Failure) -> None:
        if self.lost:
            return
        self.lost = failure
        if not self.settled.done():
            self.settled.set_result(failure)
        for stream in self._streams.values():
            if not stream.ended.done():
                stream.ended.set_result(_seen_by(stream, failure))
        self._streams.clear()
        if self._transport is not None:
            self._transport.abort()
        self._on_lost(self)


def _seen_by(stream: Stream, failure: Failure) -> Failure:
    """What the loss of the connection means to one request on it."""
    if stream.answer.wire_bytes or failure.outcome not in (Outcome.TRUNCATED, Outcome.RESET):
        return failure
    known = failure.outcome is Outcome.TRUNCATED
    return failure._replace(error=CLOSED_AFTER_SEND if known else f"{CLOSED_AFTER_SEND}: {failure.error}")
