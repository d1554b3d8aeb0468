"""Servers whose timing is known, pinned to a core, asked afterwards what was true."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.mockserver.process import running
from tests.factories.sockets import PEM


@dataclass(frozen=True)
class Timing:
    """What the server is to do with each request; gap 0 writes as fast as it can, `burst` tokens a write."""

    ttft_ms: float
    gap_ms: float
    tokens: int
    burst: int = 1
    tls: bool = False  # the scripted server only


@dataclass(frozen=True)
class Served:
    url: str
    truth_path: str

    def statistics(self) -> dict[str, Any]:
        """Also when the first request came and the last token left, on the monotonic clock."""
        with urllib.request.urlopen(self.url + self.truth_path, timeout=120) as response:
            document: dict[str, Any] = json.load(response)
        if "records" not in document:
            return document
        first = min(record["received_ns"] for record in document["records"])
        last = max(record["write_ns"][-1] for record in document["records"])
        return {**document["statistics"], "first_recv_ns": first, "last_write_ns": last}


@contextmanager
def serving(timing: Timing, core: int, binary: Path | None) -> Iterator[Served]:
    """The compiled server where its path is given, else the scripted server of this project."""
    if binary is None or timing.tls:
        habits: dict[str, Any] = {"events_per_write": timing.burst} if timing.burst > 1 else {}
        if timing.tls:
            habits["tls_pem"] = os.environ["SSL_CERT_FILE"] = str(PEM)
        with running(
            ttft_ms=timing.ttft_ms, gap_ms=timing.gap_ms, tokens=timing.tokens, precise=True, **habits
        ) as it:
            os.sched_setaffinity(it.pid, {core})
            yield Served(it.url, "/truth")
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    times = ("--ttft-ms", timing.ttft_ms, "--gap-ms", timing.gap_ms, "--tokens", timing.tokens)
    command = [binary, "--port", port, *times]
    if not timing.gap_ms:
        command += ["--burst", timing.burst, "--no-writes"]
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL)
    try:
        os.sched_setaffinity(process.pid, {core})
        _wait_for(port)
        yield Served(f"http://127.0.0.1:{port}", "/truth")
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")
