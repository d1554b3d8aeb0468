"""axe-core over pages of the built site: the landing page, installing, reading a result, commands."""

import functools
import http.server
import threading
from pathlib import Path

import pytest

from tests.browser.axe import violations

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
PAGES = ("", "install.html", "first-run.html", "reading-a-result.html", "verdicts.html", "commands.html")


@pytest.fixture(scope="module")
def address():
    assert (SITE / "index.html").is_file(), "`make site` builds the pages"
    handler = functools.partial(_Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (390, False)], ids=["light", "dark", "phone"]
)
@pytest.mark.parametrize("name", PAGES, ids=lambda name: name.partition(".")[0] or "landing")
def test_axe_finds_nothing(page, address, name, width, dark):
    page.open(f"{address}/{name}", width, dark=dark)
    assert violations(page) == []
