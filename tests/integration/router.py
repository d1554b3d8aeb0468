"""Routers in front of two servers: by a header, in turn, or through both in their roles."""

import http.client
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import urlsplit

TO_GENERATE = "/v1/chat/completions"
Choose = Callable[[Mapping[str, str], bytes], int]


def by_header(name: str, servers: int) -> Choose:
    """Requests of one value of the header go to one server, those without it to the next one each."""
    turn = count()

    def choose(headers: Mapping[str, str], _body: bytes) -> int:
        known = headers.get(name)
        return (zlib.crc32(known.encode()) if known else next(turn)) % servers

    return choose


def in_roles(prefill: str) -> Choose:
    """The first server reads the prompt, for one token that nobody sees; then the second one answers."""

    def choose(headers: Mapping[str, str], body: bytes) -> int:
        asked = {**json.loads(body), "max_tokens": 1, "stream": False, "stream_options": None}
        with closing(http.client.HTTPConnection(urlsplit(prefill).netloc)) as connection:
            connection.request("POST", TO_GENERATE, json.dumps(asked), {"content-type": "application/json"})
            connection.getresponse().read()
        return 1

    return choose


@contextmanager
def router(upstreams: Sequence[str], choose: Choose) -> Iterator[str]:
    """Its URL. Chats go to the server that is chosen; all else to each, of which the first answers."""
    hosts = [urlsplit(url).netloc for url in upstreams]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path == TO_GENERATE:
                self._pass_on(hosts[choose(self.headers, body)], body)
                return
            for host in hosts[1:]:
                with self._asked(host, body) as answer:
                    answer.read()
            self._pass_on(hosts[0], body)

        def do_GET(self) -> None:
            self._pass_on(hosts[0], b"")

        @contextmanager
        def _asked(self, host: str, body: bytes) -> Iterator[http.client.HTTPResponse]:
            with closing(http.client.HTTPConnection(host)) as connection:
                kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                connection.request(self.command, self.path, body, kept)
                with connection.getresponse() as answer:
                    yield answer

        def _pass_on(self, host: str, body: bytes) -> None:
            with self._asked(host, body) as answer:
                self.send_response(answer.status)
                for name in ("content-type", "x-bench-simulated"):
                    if value := answer.headers.get(name):
                        self.send_header(name, value)
                self.send_header("connection", "close")
                self.end_headers()
                while part := answer.read1(65536):
                    self.wfile.write(part)
                    self.wfile.flush()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
