"""The live port against clients that hang, trickle, flood and never read: others are answered, it ends."""

import http.client
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import pytest

from harness.cli.display import page_server
from tests.waiting import in_time, until

PAGE = b"figure 1\n"
LIMIT_S = 20.0  # of a scraper's patience, and of the end
LARGE = bytes(2_000_000)  # more than the system takes of an answer that nobody reads


@pytest.fixture(autouse=True)
def _late_deadline(monkeypatch):
    """What waits for the deadline of a connection exceeds LIMIT_S, however busy the machine is."""
    monkeypatch.setattr(page_server, "CONNECTION_S", 30 * LIMIT_S)


@contextmanager
def served(page=PAGE):
    """The port, and a list with the time of each call for the page."""
    made = []

    def make():
        made.append(time.monotonic())
        return page

    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000)  # of each connection; else 4 MB
    with page_server.serving(listener, "/metrics", "text/plain", make):
        yield listener.getsockname()[1], made


def connected(port, said=b""):
    client = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
    client.sendall(said)
    return client


def scraped(port, path="/metrics", method="GET"):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        client.request(method, path)
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


@contextmanager
def ending_in_time(*served_as):
    """served(), whose end waits for no client."""
    stack = ExitStack()
    try:
        yield stack.enter_context(served(*served_as))
    finally:
        in_time(stack.close, LIMIT_S)


def ended(client):
    """The server closed it, and sent nothing before."""
    try:
        return client.recv(100) == b""
    except ConnectionError:
        return True


def refused(client, said):
    """The server has closed the connection, which shows at the second send after it."""
    try:
        client.sendall(said)
    except ConnectionError:
        return True
    return False


HALF = b"GET /metrics HTTP/1.1\r\nHost: here\r\n"
NEVER_READS = HALF + b"\r\n"
HANGING = {"silent": b"", "half a request": HALF, "never reads": NEVER_READS}


@pytest.mark.parametrize("said", HANGING.values(), ids=HANGING)
def test_a_client_that_hangs_keeps_no_other_waiting_and_not_the_end(said):
    clients = []
    with ending_in_time(PAGE if said != NEVER_READS else LARGE) as (port, _):
        clients += [connected(port, said) for _ in range(20)]
        assert scraped(port)[0] == 200
    for client in clients:
        client.close()


@pytest.mark.parametrize("said", HANGING.values(), ids=HANGING)
def test_a_connection_has_a_deadline(monkeypatch, said):
    monkeypatch.setattr(page_server, "CONNECTION_S", 0.1)
    with served(page=LARGE) as (port, _), connected(port, said) as client:
        client.settimeout(20)
        time.sleep(0.3)  # the deadline passes while nothing is read
        read = 0
        try:
            while data := client.recv(1 << 20):
                read += len(data)
        except ConnectionError:
            pass
        assert read < len(LARGE)


def test_bytes_one_at_a_time_do_not_move_the_deadline(monkeypatch):
    monkeypatch.setattr(page_server, "CONNECTION_S", 0.5)
    with served() as (port, made), connected(port) as client:
        until(lambda: refused(client, b"G"), "cut off", seconds=LIMIT_S, every_s=0.01)
        assert scraped(port) == (200, PAGE)
        assert len(made) == 1


def test_the_end_does_not_wait_for_one_that_trickles():
    stop = threading.Event()

    def trickle(client):
        while not stop.wait(0.01):
            try:
                client.send(b"x")
            except OSError:
                return

    try:
        with ending_in_time() as (port, _):
            clients = [connected(port, b"GET /") for _ in range(8)]
            threads = [threading.Thread(target=trickle, args=(client,)) for client in clients]
            for thread in threads:
                thread.start()
    finally:
        stop.set()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()


def test_64_scrapers_at_once_are_all_answered():
    found = []
    with served() as (port, _):
        threads = [threading.Thread(target=lambda: found.append(scraped(port))) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert found == [(200, PAGE)] * 64


def test_more_than_it_holds_displace_the_oldest_and_a_scraper_is_still_answered():
    with served() as (port, _):
        clients = [connected(port) for _ in range(page_server.MOST_CONNECTIONS + 10)]
        assert scraped(port) == (200, PAGE)
        assert ended(clients[0])
        clients[-1].sendall(NEVER_READS)
        assert clients[-1].recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
        for client in clients:
            client.close()


def test_a_request_without_end_is_cut_off():
    with served() as (port, made):
        client = connected(port)
        assert any(refused(client, b"GET /" + b"a" * 100_000) for _ in range(2000))
        client.close()
        assert scraped(port) == (200, PAGE)
        assert len(made) == 1


def test_half_a_request_and_a_close_leave_nothing():
    with served() as (port, _):
        for _ in range(page_server.MOST_CONNECTIONS + 16):
            connected(port, HALF).close()
        assert scraped(port) == (200, PAGE)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /other HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", 200),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET  HTTP/1.1\r\n\r\n", 404),
    ],
)
def test_other_requests_have_their_status(said, status):
    with served() as (port, _), connected(port, said) as client:
        assert int(client.recv(100).split(b" ")[1]) == status


def test_a_flood_makes_the_page_no_more_often_than_once_in_a_look():
    with served() as (port, made):
        threads = [
            threading.Thread(target=lambda: [scraped(port) for _ in range(8)], daemon=True) for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(made) < 128
    gaps = [later - earlier for earlier, later in pairwise(made)]
    assert min(gaps) >= page_server.TICK_S * 0.9


def test_nothing_runs_or_listens_afterwards():
    with served() as (port, _):
        assert scraped(port) == (200, PAGE)
    assert not [one for one in threading.enumerate() if one.name == "page server"]
    with pytest.raises(ConnectionRefusedError):
        connected(port)
