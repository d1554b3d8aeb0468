"""One load from two nodes of a cluster and from one machine: what each measures, and what it costs.

    python -m tests.bench.cluster_streams [--streams 10000] [--rate 3000]

Two network namespaces with clocks 3,007 s apart (tests/cluster), a scripted server in each; requests go to
each in turn, from two load processes, of one machine or of a node each. Closed: so many streams, a TTFT of
2 s and a token each second. Open: so many requests/s, a TTFT of 100 ms and four tokens. Errors are those of
the median and the p99 against the servers' own ledgers. CPU is that of the load processes, "sent" from the
first request to the last. Needs root, iproute2, the extra `ray`, and descriptors for all streams. Prints a
Markdown table; exits 1 where a request failed.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.store import RunFolder
from tests.bench.command import options
from tests.cluster.conftest import cluster
from tests.cluster.network import HEAD, OTHER, Machines
from tests.cluster.runs import TWO, cell_of

_PORTS = {HEAD: 8401, OTHER: 8402}
_PLACES = {"one machine": ("--workers", "2"), "two nodes": TWO}
_LIMIT_S = 400


@dataclass(frozen=True)
class Load:
    name: str
    flags: tuple[str, ...]
    ttft_ms: int
    gap_ms: int


def _loads(streams: int, rate: int) -> Iterator[Load]:
    closed = ("--concurrency", str(streams), "--requests", str(3 * streams), "--output-tokens", "16")
    yield Load(f"{streams:,} streams", closed, 2000, 1000)
    opened = ("--rate", str(rate), "--requests", str(20 * rate), "--output-tokens", "4")
    yield Load(f"{rate:,} requests/s", opened, 100, 20)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=3_000)
    arguments = parser.parse_args()
    print(
        "| load | from | answered | sent | TTFT p50, p99, error | sent late p50, p99 | CPU per request | × |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    failed = 0
    for load in _loads(arguments.streams, arguments.rate):
        alone_us = None
        for place, flags in _PLACES.items():
            with cluster() as machines:
                failed_here, row, cost_us = _measured(machines, load, flags)
            alone_us = alone_us or cost_us
            print(
                f"| {load.name} | {place} | {row} | {cost_us:.0f} µs | {cost_us / alone_us:.2f} |", flush=True
            )
            failed += failed_here
    return 1 if failed else 0


def _measured(machines: Machines, load: Load, flags: tuple[str, ...]) -> tuple[int, str, float]:
    """Requests that failed, columns of the table, and what a request cost in µs of CPU."""
    for address, port in _PORTS.items():
        times = ("--ttft-ms", load.ttft_ms, "--gap-ms", load.gap_ms)
        command = (sys.executable, "-m", "harness", "truth", "--host", address, "--port", port, *times)
        machines.start(f"server-{address}", address, *command, "--no-prefix-cache")
        machines.wait_for(port, address)
    urls = "+".join(f"http://{address}:{port}" for address, port in _PORTS.items())
    words = (
        *("--scenario", "fixed-length", "--backends", f"openai={urls}", "--repeats", "1"),
        *("--profile", "cpu", "--no-probe", "--no-agreement", "--no-report", "--input-tokens", "16"),
    )
    done = machines.run("run", *words, "--out", "results", *load.flags, *flags, timeout=_LIMIT_S)
    assert done.returncode in (0, 4), done.stderr
    (run,) = (machines.folder / "results").iterdir()
    folder = RunFolder(run)
    records, facts = cell_of(folder)
    (cell,) = folder.read_json("summary.json")["cells"]
    rows = records.requests[records.requests["outcome"] == 0]
    seen_ms = (rows["first_text_ns"] - rows["sent_ns"]) / 1e6
    truth_ms = [
        (one["write_ns"][0] - one["received_ns"]) / 1e6
        for address, port in _PORTS.items()
        for one in machines.ledger(address=address, port=port)["records"]
        if one["received_ns"] >= facts.t0_monotonic_ns
    ]
    errors = [np.percentile(seen_ms, q) - np.percentile(truth_ms, q) for q in (50, 99)]
    late = cell["client"]["send_lag_ms"]
    sent_per_s = 1e9 * (len(rows) - 1) / np.ptp(rows["sent_ns"])
    row = (
        f"{len(rows):,} of {len(records.requests):,} | {sent_per_s:,.0f}/s "
        f"| {errors[0]:+.2f}, {errors[1]:+.2f} ms | {late['p50']:.1f}, {late['p99']:.1f} ms"
    )
    failed = len(records.requests) - len(rows)
    return failed, row, 1e6 * cell["client"]["cpu_s"] / len(records.requests)


if __name__ == "__main__":
    sys.exit(main())
