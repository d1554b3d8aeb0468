"""The sampler's process on this machine: who used the CPU, what the engine says, what becomes of the dead."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

from harness.host.access import Access
from harness.metrics import cpu_use
from harness.metrics.window import Window
from harness.mockserver import running
from harness.model import Server
from harness.sampling.job import Exporter, Watch
from harness.sampling.sources.processes import listener
from harness.sampling.watcher import Watcher
from harness.store import RunFolder
from tests.integration.scripted import SMALL, bench, define, run_folder, summary

# A third of a core: others measure next to it.
SPIN = """import time
end = time.monotonic() + {s}
while (now := time.monotonic()) < end:
    while time.monotonic() < now + 0.02: pass
    time.sleep(0.04)"""


def watched(seconds, **watch):
    with Watcher(Watch(bench_pid=os.getpid(), **watch)) as watcher:
        t0 = time.monotonic_ns()
        time.sleep(seconds)
        telemetry = watcher.stop(t0)
    return telemetry, watcher.sampled


def cpu_s(process):
    """CPU seconds so far, with those of its children."""
    own = psutil.Process(process.pid)
    times = [one.cpu_times() for one in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def exporter(url, **names):
    return Exporter(url=url, access=Access(), **names)


COUNTERS = {"output_tokens": "vllm:generation_tokens_total", "draft_tokens": "vllm:no_such_total"}
GAUGES = {"running": "vllm:num_requests_running", "kv_use": "vllm:kv_cache_usage_perc"}


def test_the_engines_cpu_is_told_from_others():
    """A process with a child that works, its child's child, and a stranger."""
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''{SPIN.format(s=9)}'''])"
    engine = subprocess.Popen([sys.executable, "-c", nested])
    stranger = subprocess.Popen([sys.executable, "-c", SPIN.format(s=9)], start_new_session=True)
    try:
        time.sleep(0.5)
        # The stranger is this process's child too: it may not count as the load generator's.
        used_s, began = [cpu_s(engine), cpu_s(stranger)], time.monotonic()
        telemetry, facts = watched(3.0, engine_pid=engine.pid)
        took_s = time.monotonic() - began
        engine_cores, stranger_cores = (
            (cpu_s(one) - before) / took_s for one, before in zip((engine, stranger), used_s, strict=True)
        )
    finally:
        for process in (engine, stranger):
            process.kill()
            process.wait()
    window = Window(0, 2_800_000_000, "whole")
    host = cpu_use.host(telemetry, facts.sources, window)
    server = cpu_use.server(telemetry, facts.sources, window, Server(), {})
    assert host.server_cores == pytest.approx(engine_cores, rel=0.3)
    assert host.client_cores > 0.7 * stranger_cores, "whatever else this process started is its own work"
    assert host.server_cores + host.client_cores <= host.busy_cores + 0.1
    assert server.busiest_process.cores == pytest.approx(host.server_cores, abs=0.05)
    # A machine that is busy reads too seldom for a range over the window.
    assert telemetry.get("server.rss_bytes").values.max() > 5e6
    names = facts.sources["processes"].about["engine_processes"]
    assert len(names) == 2


def test_a_local_server_is_found_by_its_port():
    with running(ttft_ms=1) as server:
        port = int(server.url.rpartition(":")[2])
        assert listener(port) == server.pid
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert listener(free.getsockname()[1]) is None


def test_engine_metrics_are_sampled_and_what_it_lacks_is_named():
    with running(ttft_ms=1) as server:
        telemetry, facts = watched(
            2.0, exporters=[exporter(f"{server.url}/metrics", counters=COUNTERS, gauges=GAUGES)]
        )
    engine = facts.sources["engine"]
    assert engine.failures == 0
    assert 3 <= len(telemetry.get("engine.running").values) <= 7
    assert engine.missing == {"engine.draft_tokens": "no vllm:no_such_total in the engine's metrics"}
    assert "engine.draft_tokens" not in telemetry.series


def test_an_exporter_that_dies_is_a_gap_and_nothing_more():
    with running(ttft_ms=1) as server:
        watch = Watch(bench_pid=os.getpid(), exporters=[exporter(f"{server.url}/metrics", counters=COUNTERS)])
        with Watcher(watch) as watcher:
            time.sleep(2.0)
            killed_ns = time.monotonic_ns()
            os.kill(server.pid, signal.SIGKILL)
            time.sleep(2.0)
            telemetry = watcher.stop(0)
    engine = watcher.sampled.sources["engine"]
    since_ns = engine.failing_since_s * 1e9
    assert since_ns - killed_ns > -0.5e9, "the look that it was killed in began before"
    assert engine.failures >= 2, "the last look was not the first that failed"
    assert "refused" in engine.last_failure.lower() or "reset" in engine.last_failure.lower()
    assert telemetry.get("engine.output_tokens").at_ns[-1] < since_ns
    assert telemetry.get("host.cpu_busy_s").at_ns[-1] - killed_ns > 1.5e9, "all else goes on"


def test_an_exporter_that_hangs_holds_up_no_other_source():
    with running(ttft_ms=1) as server:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            telemetry, facts = watched(5.0, exporters=[exporter(f"{server.url}/metrics", counters=COUNTERS)])
        finally:
            os.kill(server.pid, signal.SIGCONT)
    assert facts.sources["engine"].failing_since_s is not None
    assert len(telemetry.get("host.cpu_busy_s").values) > 12
    assert facts.problem is None


def test_a_killed_sampler_loses_half_a_second():
    with Watcher(Watch(bench_pid=os.getpid())) as watcher:
        t0 = time.monotonic_ns()
        time.sleep(2.0)
        watcher.process.kill()
        telemetry = watcher.stop(t0)
    assert watcher.sampled.problem == "the sampler was killed"
    assert telemetry.get("host.cpu_busy_s").at_ns[-1] > 1.0e9


def test_a_stopped_sampler_says_for_how_long():
    with Watcher(Watch(bench_pid=os.getpid())) as watcher:
        time.sleep(0.5)
        watcher.process.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        time.sleep(1.5)
        continued_s = time.monotonic()
        watcher.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        watcher.stop(0)
        ended_s = time.monotonic()
    longest = max(watcher.sampled.stalls, key=lambda stall: stall.lasted_ms)
    assert longest.lasted_ms >= 1300
    assert stopped_s - 0.25 < longest.at_s < stopped_s + 0.1, "a beat was due at most 100 ms later"
    assert continued_s < longest.at_s + longest.lasted_ms / 1e3 < ended_s


def test_nothing_is_started_where_sampling_is_off():
    with Watcher(None) as watcher:
        watcher.idle()
        assert watcher.stop(0).series == {}
    assert "--sample-hz 0" in watcher.sampled.problem


def test_a_run_whose_engine_has_no_metrics_after_all_is_measured_and_says_so(here):
    file = define("deaf", ttft_ms=200)
    gauges = '[metrics.gauges]\nrunning = "vllm:num_requests_running"\n'
    file.write_text(file.read_text().replace('"/metrics"', '"/no-metrics-here"') + gauges)
    small = ("--requests", "16", "--concurrency", "4", "--output-tokens", "8", "--repeats", "1")
    quick = ("--no-probe", "--no-report")
    done = bench("run", "--scenario", "fixed-length", "--backends", "deaf", *small, *quick, "-v")
    found = summary()
    (cell,) = found["cells"]
    assert cell["requests"]["ok"] == 16
    assert cell["server"]["running"] is None
    assert cell["server"]["cpu_cores"] > 0
    gap = next(warning for warning in found["warnings"] if warning["code"] == "telemetry-gap")
    assert gap["text"].startswith("the engine's metrics did not answer: ")
    assert "answers 404" in gap["text"]
    assert "telemetry-gap" in done.stdout


class Restless(BaseHTTPRequestHandler):
    """Metrics of an engine that goes on with abandoned requests: no two reads are the same."""

    tokens = itertools.count(1000, 10)

    def do_GET(self):
        text = f"vllm:generation_tokens_total {next(self.tokens)}\n".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def test_an_engine_that_counts_before_and_after_the_load_did_not_restart(here):
    with (
        running(dialect="vllm", ttft_ms=60, gap_ms=5) as server,
        ThreadingHTTPServer(("127.0.0.1", 0), Restless) as metrics,
    ):
        threading.Thread(target=metrics.serve_forever, daemon=True).start()
        bench(
            *("run", "--scenario", "fixed-length", "--backends", f"vllm={server.url}", *SMALL),
            *("--metrics-url", f"http://127.0.0.1:{metrics.server_port}/metrics"),
            code=(0, 4),
        )
        counted = next(Restless.tokens) - 1000
        metrics.shutdown()
    run = RunFolder(run_folder())
    (cell,) = run.cells()
    facts = run.read_facts(cell)
    assert facts.counter_restarts == 0
    assert 0 < facts.server_counters["output_tokens"] < counted


def test_a_file_in_the_users_directory_is_not_mistaken_for_a_library(tmp_path, monkeypatch):
    for name in ("psutil", "pynvml", "amdsmi"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not mine')")
    monkeypatch.chdir(tmp_path)
    telemetry, facts = watched(1.0)
    assert facts.problem is None
    assert len(telemetry.get("host.cpu_busy_s").values) >= 2
