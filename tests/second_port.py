"""Metrics at a second port, where some engines have theirs. Standard library only: it runs in images."""

import http.server
import urllib.request


def pass_on(port: int, second: int, path: str) -> http.server.ThreadingHTTPServer:
    """A server at port `second` that answers `path` with the metrics of the server at `port`."""

    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                text = answer.read()
            self.send_response(200 if self.path == path else 404)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    return http.server.ThreadingHTTPServer(("", second), Metrics)
