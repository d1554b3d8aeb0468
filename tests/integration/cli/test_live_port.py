"""A whole run whose live port has clients that hang: it measures, answers a scraper, and ends at once."""

import socket
import threading
import time
import urllib.request
from contextlib import suppress

import pytest

from tests.integration.scripted import SMALL, begin, define, run_folder
from tests.unit.cli.display.test_metrics_port import free_port

LIMIT_S = 120


def trickle(port, stop):
    """A byte of a request now and then, and again where the connection was closed."""
    while not stop.wait(0.05):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
            while not stop.wait(0.05):
                client.sendall(b"x")


def scrape(port):
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return b"bench_run_elapsed_seconds" in answer.read()
    return False  # not up yet, or gone


@pytest.mark.long
def test_clients_that_hang_hold_up_neither_a_scraper_nor_the_end(here):
    define("one", ttft_ms=50, gap_ms=5)
    port, stop, scraped = free_port(), threading.Event(), 0
    run = ("run", "--scenario", "fixed-length", "--backends", "one", *SMALL, "--repeats", "1")
    threads = [threading.Thread(target=trickle, args=(port, stop)) for _ in range(16)]
    with begin(*run, "--no-agreement", "--metrics-port", str(port)) as bench:
        for thread in threads:
            thread.start()
        until = time.monotonic() + LIMIT_S
        while bench.poll() is None and time.monotonic() < until:
            scraped += scrape(port)
            time.sleep(0.02)
        ended, code = time.time(), bench.returncode
        stop.set()
        bench.kill()
        said = bench.communicate()
    for thread in threads:
        thread.join(10)
    assert code in (0, 4), said
    assert "Traceback" not in said[1]
    assert scraped > 5
    assert ended - (run_folder() / "summary.json").stat().st_mtime < 20  # with clients that never end
