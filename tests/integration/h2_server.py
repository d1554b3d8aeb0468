"""A chat server that speaks nothing but HTTP/2, in clear text with prior knowledge."""

import json
import socket
import threading
from contextlib import contextmanager, suppress

import h2.config
import h2.connection
import h2.events

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


def _serve(sock):
    config = h2.config.H2Configuration(client_side=False)
    connection = h2.connection.H2Connection(config=config)
    connection.initiate_connection()
    with sock:
        sock.sendall(connection.data_to_send())
        while data := sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if isinstance(event, h2.events.StreamEnded):
                    _answer(connection, event.stream_id)
            sock.sendall(connection.data_to_send())


def _accept(listener):
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:  # closed: the test is over
            return
        threading.Thread(target=_quietly, args=(sock,), daemon=True).start()


def _quietly(sock):
    with suppress(OSError):  # a client that closes in the middle
        _serve(sock)


@contextmanager
def running_h2():
    """Its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
