"""A request that was given up, on a connection whose server answers it all the same."""

import asyncio

import h2.config
import h2.connection
import pytest

from harness.load.http1 import Answer
from harness.load.http2_connection import Http2Connection

HEADERS = [(b":method", b"POST"), (b":authority", b"a"), (b":scheme", b"http"), (b":path", b"/")]


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...


def take(client: Http2Connection, data: bytes) -> None:
    client.get_buffer(-1)[: len(data)] = data
    client.buffer_updated(len(data))


@pytest.mark.parametrize("given_up", [False, True])
def test_its_answer_grows_no_more_and_the_next_request_is_answered(given_up: bool) -> None:
    async def talk() -> list[Answer]:
        client, wire = Http2Connection(lambda _: None, reuse=True), Wire()
        server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        server.initiate_connection()
        client.connection_made(wire)
        take(client, server.data_to_send())
        answers = [Answer(), Answer()]
        first, second = (client.begin(HEADERS, b"{}", answer) for answer in answers)
        server.receive_data(wire.written)
        if given_up:
            first.ended.cancel()  # as its task is, which abandons it when it runs
        for stream in (first, second):
            server.send_headers(stream.id, [(":status", "200")])
            server.send_data(stream.id, b"whole", end_stream=True)
        take(client, server.data_to_send())
        assert await second.ended is None
        return answers

    dropped, whole = asyncio.run(talk())
    assert (dropped.parts, dropped.stamps != []) == (([], False) if given_up else ([b"whole"], True))
    assert (whole.parts, whole.status) == ([b"whole"], 200)
