"""What sampling costs: CPU of the sampler's process at its defaults, and what the measured load feels of it.

    python -m tests.bench.sampler_cost [--seconds 20] [--gpus 8 | --driver]

First, the sampler next to an idle scripted server, on a stub of NVML with one GPU and with several: the limit
is 1% of a core for one GPU. Then the same load with and without sampling, alternately: gaps between tokens,
lateness of the loop and TTFT, as ratios within one run. The stub answers at once. `--driver` reads this
machine's GPUs through its own driver instead.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, LoadResult, OpenLoop
from harness.mockserver import MockServer, running
from harness.sampling.job import Exporter, Watch
from harness.sampling.watcher import Watcher
from tests.bench.command import options
from tests.integration.nvml import Machine, build

LIMIT = 0.01  # of a core, at the defaults, with one GPU
STREAMS, TOKENS, REQUESTS = 64, 50, 640
COUNTERS = {"output_tokens": "vllm:generation_tokens_total"}
GAUGES = {"running": "vllm:num_requests_running", "kv_use": "vllm:kv_cache_usage_perc"}


def watch(server: MockServer) -> Watch:
    exporter = Exporter(url=f"{server.url}/metrics", access=Access(), counters=COUNTERS, gauges=GAUGES)
    return Watch(bench_pid=os.getpid(), exporters=(exporter,), engine_pid=server.pid)


def own_cost(seconds: float) -> tuple[float, int, float, dict[str, float]]:
    """Share of a core, samples per second, peak memory in MB; share of each source."""
    with running() as server, Watcher(watch(server)) as watcher:
        time.sleep(seconds)
        telemetry = watcher.stop(time.monotonic_ns())
    own = watcher.sampled.sampler
    samples = sum(len(one.values) for one in telemetry.series.values())
    shares = {name: source.cpu_s / own["wall_s"] for name, source in watcher.sampled.sources.items()}
    return own["cpu_s"] / own["wall_s"], round(samples / own["wall_s"]), own["peak_rss_bytes"] / 1e6, shares


def load(server: MockServer, tokens: int, requests: int, schedule: ClosedLoop | OpenLoop) -> LoadJob:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"ignore_eos":true,'
    body += b'"stream_options":{"include_usage":true},"max_tokens":%d}' % tokens
    return LoadJob(
        url=f"{server.url}/v1/chat/completions",
        access=Access(),
        bodies=[body] * requests,
        schedule=schedule,
        workers=1,
    )


def timed(result: LoadResult) -> tuple[float, float, float]:
    """In ms: p99 of how far gaps are off the 20 of the script, p99 of the loop lag, mean TTFT."""
    events, rows = result.records.events, result.records.requests
    same = events["seq"][1:] == events["seq"][:-1]
    text = (events["text_chars"][1:] > 0) & (events["text_chars"][:-1] > 0)
    gaps_ms = np.diff(events["stamp_ns"])[same & text] / 1e6
    ttft_ms = (rows["first_text_ns"] - rows["sent_ns"]) / 1e6
    gap_error_ms = float(np.quantile(abs(gaps_ms - 20), 0.99))
    return gap_error_ms, result.client.loop_lag_ms.p99, float(ttft_ms.mean())


def felt(sampled: bool) -> tuple[float, float, float]:
    with running(ttft_ms=100, gap_ms=20) as server, Watcher(watch(server) if sampled else None):
        return timed(run_load(load(server, TOKENS, REQUESTS, ClosedLoop(STREAMS))))


@contextmanager
def stub() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        os.environ |= {"LD_LIBRARY_PATH": folder, "NVML_STUB": folder}
        yield Machine(Path(folder))


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--driver", action="store_true")
    asked = parser.parse_args()
    shares = []
    with nullcontext() if asked.driver else stub() as machine:
        for gpus in (1, asked.gpus) if machine else ("this machine's",):
            if machine:
                machine.set("gpus", str(gpus))
            share, samples, memory, by_source = own_cost(asked.seconds)
            shares.append(share)
            print(f"{gpus} GPU(s): {share:.2%} of a core, {samples} samples/s, {memory:.0f} MB", flush=True)
            print(f"  {', '.join(f'{name} {part:.2%}' for name, part in by_source.items())}", flush=True)
        pairs = [(felt(False), felt(True)) for _ in range(asked.pairs)]
    print(
        f"\n{STREAMS} streams, 20 ms gaps    without      with    ratio of the medians ({asked.pairs} pairs)"
    )
    for place, name in enumerate(("gap error p99, ms", "loop lag p99, ms", "TTFT mean, ms")):
        without, with_ = (statistics.median(pair[side][place] for pair in pairs) for side in (0, 1))
        print(f"{name:22} {without:9.3f} {with_:9.3f}    {with_ / without:.2f}")
    within = shares[0] < LIMIT
    print(f"\n{'within' if within else 'OVER'} {LIMIT:.0%} of a core at the defaults")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
