"""What the load feels of clients at the live port.

    python -m tests.bench.metrics_port_cost [--rounds 5]

The same open-loop load runs alternately with no client, with a scraper each second, and with a flood: 16
scrapers that ask again as soon as they are answered, 16 clients that never send a request, 16 that send a
byte every 50 ms and 16 that never read their answer. Clients here take a share of this machine's cores
themselves. `flood elsewhere` has the same clients at the same page in a process apart from the run: what
differs between the two floods is the port's own. `bench` is the CPU of the process that serves the port and
follows the load.
"""

import argparse
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Thread

import numpy as np

from harness.cli.display.metrics_port import serving
from harness.load import run_load
from harness.load.job import OpenLoop
from harness.mockserver import running
from tests.bench.command import options
from tests.bench.sampler_cost import load, timed
from tests.factories.progress import CELL, progress
from tests.unit.cli.display.test_metrics_port import free_port, going

RATE, SECONDS, TOKENS = 40.0, 8.0, 20  # requests/s: 16 streams in flight
KINDS = ("none", "one each second", "flood elsewhere", "flood")
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"
ROWS = ("requests/s", "send lag p99, ms", "loop lag p99, ms", "gap error p99, ms", "TTFT mean, ms")
SHARES = ("bench, share of a core", "clients, share of a core", "scrapes/s")


def clients(port: int, kind: str) -> None:
    """The process of the clients; it ends by SIGTERM and prints how many scrapes were answered."""
    answered = [0]

    def scrape(wait_s: float) -> None:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                client.sendall(REQUEST)
                while client.recv(65536):
                    pass
                answered[0] += 1
            time.sleep(wait_s)

    def hang(first: bytes, then: bytes) -> None:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                client.sendall(first)
                while True:
                    time.sleep(0.05)
                    client.sendall(then) if then else client.getpeername()
            time.sleep(0.05)

    def finish(*_: object) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(answered[0], used.ru_utime + used.ru_stime, flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, finish)
    flood = kind.startswith("flood")
    jobs = [(scrape, (0.0,))] * 16 if flood else [(scrape, (1.0,))]
    if flood:
        jobs += [(hang, (b"", b""))] * 16 + [(hang, (b"GET /", b"a"))] * 16 + [(hang, (REQUEST, b""))] * 16
    for target, arguments in jobs:
        Thread(target=target, args=arguments, daemon=True).start()
    signal.pause()


@contextmanager
def elsewhere() -> Iterator[int]:
    """The port of the same page, served by a process of its own."""
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bench.metrics_port_cost", "--page", str(port)]
    ) as page:
        time.sleep(1.0)  # for its imports
        yield port
        page.terminate()


@contextmanager
def visited(port: int, kind: str) -> Iterator[list[float]]:
    """Afterwards the list holds the answered scrapes and the CPU seconds of the clients."""
    found: list[float] = []
    if kind == "none":
        yield found
        found += [0.0, 0.0]
        return
    words = [sys.executable, "-m", "tests.bench.metrics_port_cost", "--clients", str(port), kind]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(1.0)  # for its imports
        yield found
        process.send_signal(signal.SIGTERM)
        found += map(float, process.communicate(timeout=20)[0].split())


def felt(kind: str) -> list[float]:
    """The figures of one window, in the order of ROWS and SHARES."""
    due_ns = (np.arange(int(RATE * SECONDS)) * 1e9 / RATE).astype(np.int64)
    port, state = free_port(), going()
    with (
        running(ttft_ms=20, gap_ms=20) as server,
        serving(("127.0.0.1", port), state),
        elsewhere() if kind == "flood elsewhere" else nullcontext(port) as target,
        visited(target, kind) as seen,
    ):
        job = load(server, TOKENS, len(due_ns), OpenLoop(due_ns))
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        result = run_load(job, lambda _: setattr(state, "load", (CELL, progress())))
        took_s, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    gap_error_ms, loop_lag_ms, ttft_ms = timed(result)
    rows = result.records.requests
    bench_s = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return [
        len(rows) / ((rows["end_ns"].max() - rows["sent_ns"].min()) / 1e9),
        result.client.send_lag_ms.p99,
        loop_lag_ms,
        gap_error_ms,
        ttft_ms,
        bench_s / took_s,
        seen[1] / (took_s + 1),
        seen[0] / (took_s + 1),
    ]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--clients", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.page:
        with serving(("127.0.0.1", asked.page), going()):
            signal.pause()
    if asked.clients:
        clients(int(asked.clients[0]), asked.clients[1])
    rounds = []
    for number in range(asked.rounds):
        order = KINDS if number % 2 == 0 else KINDS[::-1]
        rounds.append({kind: felt(kind) for kind in order})
    print(f"medians of {asked.rounds} rounds; in brackets the median ratio to `none` within a round")
    print(f"{'':26}{''.join(f'{kind:>22}' for kind in KINDS)}")
    for place, name in enumerate((*ROWS, *SHARES)):
        cells = []
        for kind in KINDS:
            median = statistics.median(one[kind][place] for one in rounds)
            ratios = [one[kind][place] / one["none"][place] for one in rounds if one["none"][place]]
            shown = f" ({statistics.median(ratios):.2f})" if place < len(ROWS) and kind != "none" else ""
            cells.append(f"{f'{median:.3f}{shown}':>22}")
        print(f"{name:26}{''.join(cells)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
