"""A client that is starved, stopped or asked for too much is found out: its figures are its own."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from harness.host.access import Access
from harness.load import run_load
from harness.load.job import LoadJob, OpenLoop
from harness.metrics.view import RequestView
from harness.mockserver import running
from harness.model import CellFacts
from harness.validity import Evidence, judge
from harness.workload.arrivals import arrivals
from tests.factories import documents
from tests.waiting import command_line

TOKENS = 4
pytestmark = pytest.mark.usefixtures("fresh_helpers")


def open_loop(server, rate, count, **cap):
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": TOKENS,
        "stream": True,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
    }
    return LoadJob(
        url=f"{server.url}/v1/chat/completions",
        access=Access(),
        bodies=[json.dumps(body).encode()] * count,
        schedule=OpenLoop(arrivals("constant", rate, count, seed=0), **cap),
        workers=1,
    )


def verdict(result, rate):
    facts = documents.made(
        CellFacts,
        client=result.client,
        load={"kind": "rate", "value": rate},
        workload={"output_tokens": TOKENS, "exact_output": True},
    )
    judged = judge(Evidence(RequestView(result.records), facts))
    return judged.verdict, {reason.code for reason in judged.reasons}


@pytest.fixture
def server():
    with running(ttft_ms=20, gap_ms=2) as server:
        yield server


def load_worker():
    """Pid of the one load worker of this process."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for task in Path("/proc/self/task").iterdir():
            for pid in (task / "children").read_text().split():
                if b"harness.load" in command_line(pid):
                    return int(pid)
        time.sleep(0.01)
    raise AssertionError("no load worker was started")


def test_a_stopped_worker_is_found_out(server):
    def pause():
        pid = load_worker()
        while len(server.truth()["records"]) < 50:  # a busy machine takes its time to begin
            time.sleep(0.1)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)

    culprit = threading.Thread(target=pause)
    culprit.start()
    result = run_load(open_loop(server, 100, 250))
    culprit.join()
    found, codes = verdict(result, 100)
    assert found == "INVALID"
    assert codes >= {"client-stalled"}
    assert "schedule-lag" not in codes, "the stall explains it"
    assert result.client.send_lag_ms.max > 500
    assert result.records.requests["sent_ns"].min() >= 0, "late requests are sent and counted, not dropped"


@pytest.mark.time
def test_a_starved_client_is_found_out(server):
    """The worker may run only when nobody else wants its core, and two others always do."""
    core = max(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile os.getppid() == {os.getpid()}: pass"

    def starve():
        pid = load_worker()
        os.sched_setaffinity(pid, {core})
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))

    culprit = threading.Thread(target=starve)
    spinners = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2)]
    try:
        culprit.start()
        result = run_load(open_loop(server, 100, 300))
        culprit.join()
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    found, codes = verdict(result, 100)
    assert found == "INVALID"
    assert codes & {"schedule-lag", "rate-missed", "merged-events"}


def test_an_impossible_rate_is_found_out(server):
    """A hundred thousand a second, of which the cap lets 32 be in flight: the schedule is missed."""
    result = run_load(open_loop(server, 100_000, 1200, max_in_flight=32))
    found, codes = verdict(result, 100_000)
    assert found == "INVALID"
    assert "held-at-cap" in codes
    assert result.client.held_at_cap > 800
    rows = result.records.requests
    waited_ms = (rows["first_text_ns"] - rows["intended_ns"]) / 1e6
    service_ms = (rows["first_text_ns"] - rows["sent_ns"]) / 1e6
    assert np.median(waited_ms) > 10 * np.median(service_ms), "the wait shows in the response time"


@pytest.mark.time
def test_a_rate_the_client_can_keep_is_not_blamed(server):
    result = run_load(open_loop(server, 20, 30))
    _found, codes = verdict(result, 20)
    assert "rate-missed" not in codes
    assert "worker-lost" not in codes
