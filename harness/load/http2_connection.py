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
from harness.load.failures import CLOSED_EARLY, closed_after_send
from harness.load.http1 import Answer
from harness.load.http2_frames import (
    DATA,
    GOAWAY,
    HEADERS,
    RST_STREAM,
    Allowance,
    Frame,
    FrameBuffer,
    Goaway,
    code_name,
    read_goaway,
)
from harness.records.layout import Outcome

Headers = Sequence[tuple[bytes, bytes]]

MOST_STREAMS = 100  # what h2 does with each frame grows with them
_WINDOW_BYTES = 1 << 24
_CHUNK_BYTES = 65_536
_CRUMB_BYTES = 1024  # a window that opens by less earns the server nothing
_UNSENT_BYTES = 1 << 20  # of replies that the server does not read
_CONFIG = h2.config.H2Configuration(validate_inbound_headers=False, header_encoding=None)


class Failure(NamedTuple):
    outcome: Outcome
    error: str
    unread: bool = False  # the server says that it did nothing with the request


class Stream:
    """One request and its answer. `ended` becomes None where the answer is whole or too long."""

    __slots__ = ("answer", "body", "ended", "id")

    def __init__(self, stream_id: int, answer: Answer, body: bytes) -> None:
        self.id, self.answer = stream_id, answer
        self.body = memoryview(body)  # what was not sent yet
        self.ended: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()


class Http2Connection(asyncio.BufferedProtocol):
    """Usable once `settled` is done: its result is None, or the reason the server sent no settings.

    `on_lost` is called once, when the connection carries nothing any more.
    """

    def __init__(self, on_lost: Callable[["Http2Connection"], object], *, reuse: bool) -> None:
        self.settled: asyncio.Future[Failure | None] = asyncio.get_running_loop().create_future()
        self._on_lost, self._reuse = on_lost, reuse
        self._h2 = h2.connection.H2Connection(_CONFIG)
        self._transport: asyncio.Transport | None = None
        self._frames, self._allowance = FrameBuffer(), Allowance()
        self._streams: dict[int, Stream] = {}
        self._newest = 0  # the highest number of a stream so far
        self.lost: Failure | None = None
        self._retired = self._paused = False

    # -- what a request does -------------------------------------------------------------------------

    def room(self) -> int:
        """How many more requests may begin now."""
        usable = self.settled.done() and not self._retired and not self.lost
        allowed = self._h2.remote_settings.max_concurrent_streams
        most = min(allowed, MOST_STREAMS if self._reuse else 1)
        return max(0, most - len(self._streams)) if usable else 0

    def problem(self) -> str:
        """The reason no request is on it and none may begin, or ""."""
        if self.lost is not None:
            return self.lost.error
        return "" if self._streams or self.room() else "the server allows no requests on a connection"

    def begin(self, headers: Headers, body: bytes, answer: Answer) -> Stream:
        """Sends as much of a request as the server takes now. Raises h2's errors."""
        stream = Stream(self._h2.get_next_available_stream_id(), answer, body)
        self._newest = stream.id
        self._retired = self._retired or not self._reuse
        self._h2.send_headers(stream.id, headers, end_stream=not body)
        self._h2.increment_flow_control_window(_WINDOW_BYTES, stream.id)
        self._streams[stream.id] = stream
        self._allowance.earn()
        self._guarded(self._pump)
        return stream

    def abandon(self, stream: Stream) -> None:
        """Ends a request that waits for its answer. Others go on; new ones may not begin."""
        if stream.id in self._streams:
            self._end(stream, None, h2.errors.ErrorCodes.CANCEL)
            self._flush()

    def close(self) -> None:
        """Closes at once, whatever the server does."""
        self._lose(Failure(Outcome.RESET, "the connection was closed here"))

    # -- what asyncio calls --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
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
        return self._frames.space()

    def buffer_updated(self, size: int) -> None:
        stamp = time.monotonic_ns()
        touched: dict[Stream, None] = {}
        self._guarded(lambda: self._take_frames(size, touched))
        for stream in touched:
            stream.answer.read_ended(stamp)
            if stream.answer.oversized:
                self.abandon(stream)
        self._guarded(self._pump)

    # -- frames --------------------------------------------------------------------------------------

    def _guarded(self, step: Callable[[], object]) -> None:
        """Runs a step. Whatever it raises ends this connection and its requests, and nothing else."""
        if self.lost:
            return
        try:
            step()
        except h2.exceptions.DenialOfServiceError as error:  # header lists past the announced limit
            self._lose(Failure(Outcome.OVERSIZED, f"the head or trailer of an answer is too long: {error}"))
        except Exception as error:  # what h2 raises of bytes that no one foresaw
            self._lose(Failure(Outcome.MALFORMED, f"not HTTP/2: {error or type(error).__name__}"))

    def _take_frames(self, size: int, touched: dict[Stream, None]) -> None:
        for frame in self._frames.take(size):
            if self.lost is None:
                self._take_frame(frame, touched)

    def _take_frame(self, frame: Frame, touched: dict[Stream, None]) -> None:
        self._allowance.spend()
        stream = self._awaited(frame.stream)
        if stream is not None:
            touched[stream] = None
            stream.answer.wire_bytes += len(frame.whole)
        elif frame.kind in (DATA, HEADERS, RST_STREAM) and not self._begun(frame.stream):
            error = f"stream {frame.stream} belongs to no request"  # h2 passes over some of these
            raise h2.exceptions.ProtocolError(error)
        if frame.kind == GOAWAY:  # h2 takes no frame after it, and the server may finish what it began
            self._take_goaway(read_goaway(frame))
            return
        for event in self._h2.receive_data(frame.whole):
            self._take_event(event)

    def _awaited(self, stream_id: int) -> Stream | None:
        """The request on a stream, unless its task was cancelled, which will abandon it when it runs."""
        stream = self._streams.get(stream_id)
        return None if stream is None or stream.ended.done() else stream

    def _begun(self, stream_id: int) -> bool:
        """Whether this was ever the stream of a request; the server opens none."""
        return stream_id % 2 == 1 and stream_id <= self._newest

    def _take_event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RemoteSettingsChanged):
            if not self.settled.done():
                self.settled.set_result(None)
            return
        stream = self._awaited(getattr(event, "stream_id", None) or 0)
        if isinstance(event, h2.events.DataReceived):
            assert event.flow_controlled_length is not None
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id or 0)
            if stream is not None and event.data:
                self._allowance.earn(len(event.data))
                stream.answer.on_body(event.data)
        elif stream is None:
            return
        elif isinstance(event, h2.events.ResponseReceived):
            self._take_head(stream, event.headers or [])
        elif isinstance(event, h2.events.StreamEnded):
            stream.answer.complete_parts()
            self._end(stream, None)
        elif isinstance(event, h2.events.StreamReset):
            name = code_name(event.error_code or 0)
            if event.remote_reset:
                self._end(stream, Failure(Outcome.RESET, f"the server reset the stream: {name}"))
            else:
                self._end(stream, Failure(Outcome.MALFORMED, f"not HTTP/2: {name}"))

    def _take_head(self, stream: Stream, headers: Headers) -> None:
        pseudo = [(name, value) for name, value in headers if name.startswith(b":")]
        status = pseudo[0][1] if len(pseudo) == 1 and headers[0][0] == b":status" else b""
        if len(status) != 3 or not status.isdigit() or status < b"200":
            shown = b", ".join(b"%b: %b" % field for field in pseudo).decode("latin-1") or "none"
            error = f"not HTTP/2: the head of an answer begins with one :status, this one has {shown}"
            self._end(stream, Failure(Outcome.MALFORMED, error), h2.errors.ErrorCodes.PROTOCOL_ERROR)
            return
        for name, value in headers[1:]:
            stream.answer.on_header(name, value)
        stream.answer.head_ended(int(status))

    def _take_goaway(self, goaway: Goaway) -> None:
        """Lets no request begin any more; those that the server says it took go on."""
        self._retired = True
        failure = Failure(Outcome.RESET, f"the server closed the connection: {goaway.reason}")
        for stream in list(self._streams.values()):
            if goaway.failed or stream.id > goaway.last:
                self._end(stream, failure._replace(unread=not (goaway.failed or stream.answer.status)))
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
                if not stream.body or size >= _CRUMB_BYTES:
                    self._allowance.earn()
                self._flush()
        self._flush()

    def _flush(self) -> None:
        if self._transport is None or self.lost:
            return
        if data := self._h2.data_to_send():
            self._transport.write(data)
        if self._transport.get_write_buffer_size() > _UNSENT_BYTES:
            self._lose(Failure(Outcome.MALFORMED, "the server asks, and does not read replies"))

    # -- ends ----------------------------------------------------------------------------------------

    def _end(self, stream: Stream, failure: Failure | None, code: h2.errors.ErrorCodes | None = None) -> None:
        """Ends one request. If `code` resets it, none may begin after it: the server may serve none."""
        del self._streams[stream.id]
        self._retired = self._retired or code is not None
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
    """What the loss of the connection means to one of its requests."""
    if stream.answer.wire_bytes or failure.outcome not in (Outcome.TRUNCATED, Outcome.RESET):
        return failure
    return failure._replace(error=closed_after_send(failure.outcome, failure.error))
