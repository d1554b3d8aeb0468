"""How exact and how cheap the load engine is, against a server whose timing is known.

    python -m tests.bench.exactness [--server TRUTHSERVER] [--c-client CCLIENT] [--tokenizer FOLDER]
                                    [--peer NAME=FILE]... [--loads A,B,C] [--repeat 3]

Prints one markdown table: medians over the repeats of (what the client says - what the server did) for the
same statistic of the same run. Server and client are pinned to one core each, which should be idle. Without
--server the scripted server of this project answers; it cannot reach the fastest loads; it always answers T,
and judges it by the kernel's stamps of receipt. The loads BC, BR and BM are load B in other
APIs, from the scripted server. Q has answers of one token; QE and QR are the same in APIs whose answers come
whole (a text, a query with its document), and their TTFT is that of the answer. --c-client is a bare
epoll client (HOST PORT REQUESTS CONCURRENCY TOKENS, JSON on stdout): what reading promptly costs at least.
Plain httpx runs beside this engine on every paced closed loop (A, B, C, E). With --tokenizer (a folder they
can load) so do the peers that are on PATH or where --peer says; one that fails says why on stderr and has no
row.

TTFT runs from `sent`, connecting kept apart; the server's runs from "request received"; that of the peers
counts connecting. CPU is the worker's in the window plus all of the parent's for this engine, start to exit
for the C client, and for the peers their whole process tree's between the first request and the last token:
start-up and evaluation are not in it.
"""

import argparse
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from harness.apis import APIS, ApiName
from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, LoadResult, OpenLoop
from harness.load.transport import Transport
from harness.records.layout import Outcome
from tests.bench.command import options
from tests.bench.peers import PEERS, Peer, PeerError, Row, children_cpu_s
from tests.bench.truth_servers import Served, Timing, serving


@dataclass(frozen=True)
class Load:
    title: str
    timing: Timing
    streams: int
    requests: int
    rate: float | None = None  # Poisson arrivals per second instead of a closed loop
    reconnect: bool = False  # every request on a new connection
    workers: int = 1
    transport: Transport = Transport.KERNEL_STAMPS
    api: ApiName = "chat"  # others: the scripted server answers

    def ideal_s(self) -> float:
        answer_s = (self.timing.ttft_ms + self.timing.gap_ms * (self.timing.tokens - 1)) / 1e3
        return answer_s * -(-self.requests // self.streams)


_B = Load("256 streams, gap 20 ms", Timing(100, 20, 128), 256, 1024)
_Q = Load("64 requests at once, 1 token", Timing(50, 0, 1), 64, 4096)
LOADS = {
    "A": Load("8 streams, gap 10 ms", Timing(50, 10, 128), 8, 320),  # a p99 needs 299 samples
    "B": _B,
    "C": Load("1,024 streams, gap 50 ms", Timing(100, 50, 128), 1024, 2048),
    "E": Load("256 streams, gap 5 ms", Timing(100, 5, 256), 256, 1024),
    "U": replace(_B, title=_B.title + ", stamps in user space", transport=Transport.USER_STAMPS),
    "L": replace(_B, title=_B.title + ", without epoll", transport=Transport.POLL),
    "F": replace(_B, title=_B.title + ", httpx on asyncio", transport=Transport.HTTPX),
    "T": replace(_B, title=_B.title + ", TLS", timing=replace(_B.timing, tls=True)),
    "BC": replace(_B, title=_B.title + ", completions", api="completions"),
    "BR": replace(_B, title=_B.title + ", responses", api="responses"),
    "BM": replace(_B, title=_B.title + ", messages", api="messages"),
    "Q": _Q,
    "QE": replace(_Q, title=_Q.title + ", embeddings", api="embeddings"),
    "QR": replace(_Q, title=_Q.title + ", rerank", api="rerank"),
    "D": Load("64 streams, as fast as it goes, 16 tokens a write", Timing(0, 0, 4096, 16), 64, 2048),
    "D2": Load("the same, two workers", Timing(0, 0, 4096, 16), 64, 2048, workers=2),
    "P": Load("open loop, Poisson 500/s", Timing(50, 10, 16), 1024, 4000, rate=500),
    "K": Load("1,024 new connections at once", Timing(200, 10, 16), 1024, 2048, reconnect=True),
}


def measure(load: Load, served: Served) -> Row:
    api = APIS[load.api]
    asked = [{"role": "user", "content": "hello there"}] * (2 if api.gives == "scores" else 1)
    streamed = {"stream": True, "stream_options": {"include_usage": True}} if api.gives == "text" else {}
    body = {"model": "truth", **streamed, **api.body(asked, load.timing.tokens)}
    access = Access({"connection": "close"} if load.reconnect else {})
    schedule: ClosedLoop | OpenLoop = ClosedLoop(load.streams)
    if load.rate is not None:
        gaps_s = np.random.default_rng(1).exponential(1 / load.rate, load.requests)
        schedule = OpenLoop((np.cumsum(gaps_s) * 1e9).astype(np.int64), load.streams)
    job = LoadJob(
        served.url + api.path,
        access,
        [json.dumps(body).encode()] * load.requests,
        schedule,
        api=load.api,
        workers=load.workers,
    )
    parent = time.process_time()
    with patch("harness.load.run.choose_transport", return_value=(load.transport, "")):
        result = run_load(job)
    parent = time.process_time() - parent
    row = _errors(load, result, served)
    per = "token" if load.timing.tokens > 1 else "request"
    row[f"cpu_us_per_{per}"] = (result.client.cpu_s + parent) / row["tokens"] * 1e6
    return row


def _errors(load: Load, result: LoadResult, served: Served) -> Row:
    rows, truth = result.records.requests, served.statistics()
    failed = int(np.count_nonzero(rows["outcome"] != Outcome.OK))
    if failed:
        raise SystemExit(f"{failed} requests failed: {next(filter(None, result.records.errors))}")
    whole = APIS[load.api].gives != "text"
    ttft_ms = (rows["last_text_ns" if whole else "first_text_ns"] - rows["sent_ns"]) / 1e6
    tokens = len(rows) if whole else int(rows["output_tokens"].sum())
    found: Row = {"tokens": tokens, "tokens_per_s": tokens / result.client.wall_s}
    for q in (50, 99):
        found[f"ttft_p{q}"] = float(np.percentile(ttft_ms, q)) - truth["ttft_ms"][f"p{q}"]
    if load.timing.gap_ms:
        events = result.records.events[result.records.events["text_chars"] > 0]
        same = np.diff(events["seq"]) == 0
        found["itl_p99"] = (
            float(np.percentile(np.diff(events["stamp_ns"])[same], 99)) / 1e6 - truth["itl_ms"]["p99"]
        )
    if load.rate is None and load.timing.gap_ms:
        found["wall"] = result.client.wall_s / load.ideal_s()
    if load.rate is not None:
        found["lag_p99"] = result.client.send_lag_ms.p99
        per_100_ms = np.bincount((np.sort(rows["sent_ns"]) // 100_000_000).astype(int))[:-1]
        found["dispersion"] = float(per_100_ms.var(ddof=1) / per_100_ms.mean())
    return found


def measure_c_client(load: Load, served: Served, binary: Path) -> Row:
    before = children_cpu_s()
    port = served.url.rpartition(":")[2]
    words = [binary, "127.0.0.1", port, load.requests, load.streams, load.timing.tokens]
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True, timeout=600)
    cpu_s = children_cpu_s() - before
    said, truth = json.loads(done.stdout), served.statistics()
    tokens = load.requests * load.timing.tokens
    row = {"tokens": tokens, "tokens_per_s": said["tok_s"], "cpu_us_per_token": cpu_s / tokens * 1e6}
    for q in ("p50", "p99"):
        row[f"ttft_{q}"] = said["ttft_ms"][q] - truth["ttft_ms"][q]
    if load.timing.gap_ms:
        row["itl_p99"] = said["itl_ms"]["p99"] - truth["itl_ms"]["p99"]
        row["wall"] = said["wall_s"] / load.ideal_s()
    return row


def measure_peer(load: Load, served: Served, peer: Peer, executable: str, tokenizer: Path | None) -> Row:
    row, cpu = peer.run(executable, served.url, load.requests, load.streams, load.timing.tokens, tokenizer)
    truth = served.statistics()
    tokens, asked = truth["tokens"], load.requests * load.timing.tokens
    if tokens < asked:
        raise PeerError(f"it took {tokens} tokens of {asked}")
    for name, statistic, quantile in (
        ("ttft_p50", "ttft_ms", "p50"),
        ("ttft_p99", "ttft_ms", "p99"),
        ("itl_p99", "itl_ms", "p99"),
    ):
        if name in row and truth[statistic]["n"]:
            row[name] -= truth[statistic][quantile]
        else:
            row.pop(name, None)
    start_ns, end_ns = truth["first_recv_ns"], truth["last_write_ns"]
    span_s = (end_ns - start_ns) / 1e9
    row["tokens_per_s"] = tokens / span_s
    row["cpu_us_per_token"] = cpu.between(start_ns, end_ns) / tokens * 1e6
    if load.timing.gap_ms:
        row["wall"] = span_s / load.ideal_s()
    return row


_COLUMNS = {
    "ttft_p50": ("TTFT p50 err ms", "+.3f"),
    "ttft_p99": ("TTFT p99 err ms", "+.3f"),
    "itl_p99": ("ITL p99 err ms", "+.3f"),
    "wall": ("wall / ideal", ".3f"),
    "tokens_per_s": ("tokens/s", ",.0f"),
    "cpu_us_per_token": ("CPU us/token", ".2f"),
    "cpu_us_per_request": ("CPU us/request", ".1f"),
    "lag_p99": ("send lag p99 ms", ".3f"),
    "dispersion": ("dispersion", ".2f"),
}


def header() -> str:
    titles = " | ".join(title for title, _ in _COLUMNS.values())
    return f"| load | client | runs | {titles} |\n|---|---|---|" + "---|" * len(_COLUMNS)


def line(load: str, client: str, runs: list[Row]) -> str:
    cells = [
        format(statistics.median(run[name] for run in runs), form) if name in runs[0] else ""
        for name, (_, form) in _COLUMNS.items()
    ]
    return f"| {load} | {client} | {len(runs)} | " + " | ".join(cells) + " |"


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Keeps other measurements of this machine away."""
    if path is None:
        yield
        return
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_SPIN = """import os
os.sched_setaffinity(0, {{{core}}})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == {parent}: pass
"""


@contextmanager
def awake(cores: set[int]) -> Iterator[None]:
    """Spinners that yield to anything else: a halted virtual core takes up to 0.1 ms to come back."""
    spinners = [
        subprocess.Popen([sys.executable, "-c", _SPIN.format(core=core, parent=os.getpid())])
        for core in cores
    ]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--server", type=Path, help="compiled truthserver")
    parser.add_argument("--c-client", type=Path, help="compiled C epoll client")
    parser.add_argument("--tokenizer", type=Path, help="folder for the peers that want one")
    parser.add_argument(
        "--peer",
        action="append",
        type=_peer,
        default=[],
        metavar="NAME=FILE",
        help=f"of {', '.join(peer.name for peer in PEERS)}; repeatable",
    )
    parser.add_argument("--loads", default="A,B,C,E,U,L,T,F,D,P,K", help=f"of {', '.join(LOADS)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-cores", default="1", help="comma separated")
    parser.add_argument("--lock", type=Path, help="file to hold a lock on during each run")
    parser.add_argument(
        "--keep-awake",
        action="store_true",
        help="a spinner of idle priority on each core: a halted core's wake-up is not in the figures",
    )
    args = parser.parse_args()
    cores = set(map(int, args.client_cores.split(",")))
    os.sched_setaffinity(0, cores)
    with awake(cores | {args.server_core}) if args.keep_awake else nullcontext():
        _measure_all(args)


def _measure_all(args: argparse.Namespace) -> None:
    print(header())
    cpu: dict[tuple[str, ApiName], float] = {}
    for name in args.loads.split(","):
        load = LOADS[name]
        clients = _clients(load, args)
        runs: dict[str, list[Row]] = {client: [] for client in clients}
        for _ in range(args.repeat):
            for client, take in clients.items():
                try:
                    server = args.server if load.api == "chat" else None
                    with locked(args.lock), serving(load.timing, args.server_core, server) as served:
                        runs[client].append(take(served))
                except PeerError as error:
                    print(f"{load.title}, {client}: {error}", file=sys.stderr)
                    continue
                print(f"{load.title}, {client}: {runs[client][-1]}", file=sys.stderr)
        for client, taken in runs.items():
            if taken:
                print(line(load.title, client, taken), flush=True)
        for per in ("token", "request") if name[0] in "BQ" else ():
            if found := [run[key] for run in runs["this engine"] if (key := f"cpu_us_per_{per}") in run]:
                cpu[per, load.api] = statistics.median(found)
    for (per, api), own in cpu.items():
        if (per, "chat") in cpu:
            print(f"CPU per {per}, {api} against chat: {own / cpu[per, 'chat']:.2f}")


def _peer(argument: str) -> tuple[str, str]:
    name, _, executable = argument.partition("=")
    if name not in {peer.name for peer in PEERS}:
        raise argparse.ArgumentTypeError(f"no peer is called {name}")
    return name, str(Path(executable).absolute())


def _clients(load: Load, args: argparse.Namespace) -> dict[str, Callable[[Served], Row]]:
    """This engine, and whoever else can make this load."""
    clients: dict[str, Callable[[Served], Row]] = {"this engine": partial(measure, load)}
    special = load.transport is not Transport.KERNEL_STAMPS or load.workers > 1 or load.timing.tls
    special = special or load.api != "chat"
    if load.rate is not None or load.reconnect or special:
        return clients
    if args.c_client is not None:
        clients["C epoll"] = partial(measure_c_client, load, binary=args.c_client)
    for peer in PEERS if load.timing.gap_ms else ():  # at full speed most need minutes
        executable = peer.found(dict(args.peer))
        if executable is not None and (args.tokenizer is not None or not peer.wants_tokenizer):
            clients[peer.name] = partial(
                measure_peer, load, peer=peer, executable=executable, tokenizer=args.tokenizer
            )
    return clients


if __name__ == "__main__":
    main()
