"""A gateway of its own authority: TLS with client certificates, a key in a header, another in the query.

It serves below a path, under another name of the model, and keeps what it was shown.
"""

import http.client
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

PREFIX, ALIAS = "/team-a", "gateway/model"
HEADER_KEY, QUERY_KEY = "hdr-5ecret-0123456789", "qry/5ecret+0123456789"


@dataclass
class Gateway:
    url: str
    sessions: list[str] = field(default_factory=list)  # of each request to generate
    paths: set[str] = field(default_factory=set)


def make_certificates(folder: Path) -> None:
    """ca.pem; server.pem, client.pem and stranger.pem, which another authority signed, each with its .key."""
    folder.mkdir()

    def openssl(*words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=folder)

    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for authority in ("ca", "other-ca"):
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", 2, "-subj", f"/CN={authority}"),
            *("-keyout", f"{authority}.key", "-out", f"{authority}.pem"),
        )
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "other-ca")):
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"),
            *("-CAcreateserial", "-days", 2, "-extfile", "names", "-out", f"{name}.pem"),
        )
    openssl("pkey", "-in", "client.key", "-aes256", "-passout", "pass:w0rd", "-out", "locked.key")


@contextmanager
def gateway(upstream: str, certificates: Path, *, hides: bool = False) -> Iterator[Gateway]:
    """In front of `upstream`, a scripted server. `hides`: all but the API."""
    host = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass(b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            self._pass(body)

        def _pass(self, body: bytes) -> None:
            place = urlsplit(self.path)
            asked, key = parse_qs(place.query), self.headers.get("x-gateway-key")
            path = place.path.removeprefix(PREFIX)
            document = json.loads(body) if body else {}
            if key != HEADER_KEY:
                self._refuse(401, f"the key is {HEADER_KEY}, not {key}")
            elif asked.get("code") != [QUERY_KEY] or asked.get("api-version") != ["2026-01"]:
                self._refuse(403, f"not {self.path}")
            elif not place.path.startswith(f"{PREFIX}/v1/" if hides else f"{PREFIX}/"):
                self._refuse(404, "nothing here")
            elif path == "/v1/models":
                self._say(200, json.dumps({"data": [{"id": ALIAS}]}).encode())
            elif document.get("model", ALIAS) != ALIAS:
                self._refuse(404, f"no model {document['model']}")
            else:
                self._forward(path, document)

        def _forward(self, path: str, document: dict[str, object]) -> None:
            made.paths.add(path)
            if path.startswith("/v1/"):
                made.sessions.append(self.headers.get("x-session-id", ""))
            body = json.dumps(document | {"model": "simulated"}).encode() if document else None
            onward = http.client.HTTPConnection(host, timeout=30)
            onward.request(self.command, path, body, {"content-type": "application/json"})
            with onward.getresponse() as answer:
                self.send_response(answer.status)
                for name in ("content-type", "x-bench-simulated"):
                    if answer.headers[name]:
                        self.send_header(name, answer.headers[name])
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                while part := answer.read1(65536):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.write(b"0\r\n\r\n")
            onward.close()

        def _refuse(self, status: int, why: str) -> None:
            """As some do, it repeats what it was shown."""
            self._say(status, json.dumps({"error": {"message": why}}).encode())

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # handshakes that the tests make fail
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    made = Gateway(f"https://127.0.0.1:{server.server_address[1]}{PREFIX}/v1")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
