"""Keeps the image files of a run, and serves them to engines that fetch them."""

import weakref
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from harness.host import scratch
from harness.spec.scenario import Images
from harness.workload.prompts.images import Shelf, pictured
from harness.workload.prompts.request import ChatRequest


class ImageShelf:
    """Image files in a folder that is removed with the last user of this object, or with the process."""

    def __init__(self, images: Images) -> None:
        self._images, held = images, ExitStack()
        weakref.finalize(self, held.close)
        folder = held.enter_context(scratch.folder("images"))
        address = served(folder, held) if images.send == "url" else ""
        self._shelf = Shelf(folder, address)

    def decorate(self, requests: Iterable[ChatRequest], seed: int) -> Iterable[ChatRequest]:
        return pictured(requests, self._images, seed, self._shelf)


def served(folder: Path, held: ExitStack) -> str:
    """Serves a folder on 127.0.0.1 until `held` closes, and returns its URL.

    It runs in this process, which only waits while the load processes send and receive.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
    Thread(target=server.serve_forever, name="images", daemon=True).start()
    held.callback(server.server_close)
    held.callback(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}"


class _Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # engines keep the connection
    timeout = 60.0

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the base class names it
        """Logs nothing: standard error is for the run."""

    def list_directory(self, path: str) -> None:  # type: ignore[override]  # what BytesIO of nothing would be
        self.send_error(404)
