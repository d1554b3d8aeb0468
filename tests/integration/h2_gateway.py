"""A gateway that speaks HTTP/2 and HTTP/1.1 on one port, as TLS agrees, before a server of HTTP/1.1."""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import httpx

from tests.factories.sockets import server_tls

_READ_BYTES = 65536
_SERVER = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")


class Gateway:
    """`connections`: how many there were of each protocol. `posts`: requests that came over HTTP/2.

    `leaves`: at its first request over HTTP/2 it closes the connection, and says that it took none.
    """

    def __init__(self, upstream: str, leaves: bool) -> None:
        self.url = ""
        self._leaves = leaves
        self.connections: Counter[str] = Counter()
        self.posts = 0
        self._upstream = upstream

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = writer.get_extra_info("ssl_object").selected_alpn_protocol() or "http/1.1"
        self.connections[protocol] += 1
        with suppress(ConnectionError):
            await (self._serve if protocol == "h2" else self._relay)(reader, writer)
        writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = urlsplit(self._upstream)
        answers, requests = await asyncio.open_connection(address.hostname, address.port)
        await asyncio.gather(_pass(reader, requests), _pass(answers, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(_SERVER)
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        paths: dict[int, str] = {}
        bodies: defaultdict[int, bytes] = defaultdict(bytes)
        async with (
            httpx.AsyncClient(base_url=self._upstream, timeout=30) as client,
            asyncio.TaskGroup() as tasks,
        ):
            while data := await reader.read(_READ_BYTES):
                for event in connection.receive_data(data):
                    stream = getattr(event, "stream_id", 0)
                    if isinstance(event, h2.events.RequestReceived):
                        paths[stream] = dict(event.headers)[":path"]
                    elif isinstance(event, h2.events.DataReceived):
                        connection.acknowledge_received_data(event.flow_controlled_length, stream)
                        bodies[stream] += event.data
                    elif isinstance(event, h2.events.StreamEnded):
                        self.posts += 1
                        if self._leaves:
                            self._leaves = False
                            connection.close_connection(last_stream_id=0)
                            writer.write(connection.data_to_send())
                            return
                        asked = client.stream("POST", paths[stream], content=bodies.pop(stream))
                        tasks.create_task(_answer(asked, connection, stream, writer))
                writer.write(connection.data_to_send())


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_READ_BYTES):
        writer.write(data)
    writer.close()


async def _answer(asked, connection, stream: int, writer: asyncio.StreamWriter) -> None:
    async with asked as answer:
        head = [(":status", str(answer.status_code)), ("content-type", answer.headers["content-type"])]
        connection.send_headers(stream, head)
        async for part in answer.aiter_raw():
            connection.send_data(stream, part)
            writer.write(connection.data_to_send())
        connection.end_stream(stream)
        writer.write(connection.data_to_send())


@contextmanager
def gateway(upstream: str, *, leaves: bool = False) -> Iterator[Gateway]:
    made, loop = Gateway(upstream, leaves), asyncio.new_event_loop()
    tls = server_tls(["h2", "http/1.1"])
    server = loop.run_until_complete(asyncio.start_server(made.take, "127.0.0.1", 0, ssl=tls))
    made.url = "https://{}:{}".format(*server.sockets[0].getsockname())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
