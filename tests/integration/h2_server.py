"""A chat server that speaks nothing but HTTP/2: in clear text with prior knowledge, over TLS, in a tunnel."""

import json
from contextlib import ExitStack, contextmanager, suppress

import h2.config
import h2.connection
import h2.events
import h2.settings

from tests.factories.sockets import accepting

TOKENS = 4


def _events():
    for number in range(TOKENS):
        yield {"choices": [{"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    yield {
        "choices": [],
        "usage": {"prompt_tokens": 9, "completion_tokens": TOKENS, "total_tokens": 9 + TOKENS},
    }


def _answer(connection, stream):
    connection.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
    for event in _events():
        connection.send_data(stream, f"data: {json.dumps(event)}\n\n".encode())
    connection.send_data(stream, b"data: [DONE]\n\n", end_stream=True)


class Server:
    """`heads`: of the CONNECT requests, where it stands for a proxy and for the server behind it."""

    def __init__(self, tls, tunnel, most_streams):
        self._tls, self._tunnel, self._most_streams = tls, tunnel, most_streams
        self.connections, self.heads, self.url = 0, [], ""

    def talk(self, sock, number):
        self.connections = max(self.connections, number)
        with suppress(OSError), ExitStack() as stack:  # a client that closes in the middle
            stack.callback(sock.close)
            if self._tunnel:
                self.heads.append(sock.recv(65536))
                sock.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
            if self._tls is not None:
                sock = stack.enter_context(self._tls.wrap_socket(sock, server_side=True))
            self._serve(sock)

    def _serve(self, sock):
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        if self._most_streams is not None:
            most = {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self._most_streams}
            connection.update_settings(most)
        sock.sendall(connection.data_to_send())
        while data := sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if isinstance(event, h2.events.StreamEnded):
                    _answer(connection, event.stream_id)
            sock.sendall(connection.data_to_send())


@contextmanager
def running_h2(*, tls=None, tunnel=False, most_streams=None):
    server = Server(tls, tunnel, most_streams)
    with accepting(server.talk) as address:
        server.url = f"{'https' if tls else 'http'}://{address}"
        yield server
