"""Whether `bench report --as TOOL` says what the tool itself says.

    python -m tests.bench.peer_views [--peer vllm=VENV/bin/vllm]... [--tokenizer FOLDER] [--only HABIT]...

For each habit of the scripted server: one closed loop measured by `bench run`, whose records are then read as
each tool would, and the same load by the tool itself against the same server. Prints one markdown table: what
stands here, what was predicted for the tool, what the tool said, and whether that is within the stated error.
What is left between the last two is the tool's own lag: its stamps are taken in Python, ours by the kernel.
Exit code 1 when a prediction is off, 3 when no tool is there.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

from harness.cli.main import main as bench
from harness.metrics.peers import TOOLS, View, recompute
from harness.mockserver.process import running
from harness.store import RunFolder, open_run
from tests.bench.peers import PEERS, Peer, PeerError

Key = tuple[str, str]  # measure, statistic
Said = dict[Key, float]

STREAMS, REQUESTS, TOKENS = 4, 40, 32
TTFT_MS, GAP_MS = 100.0, 20.0

FROM_SEND = ("TTFT", "E2E")

# The stated error: of TTFT and E2E, of ITL and TPOT; or this share of the figure, where that is more.
LATENCY_MS, GAP_ERROR_MS, LATENCY_SHARE, RATE_SHARE = 8.0, 0.3, 0.01, 0.03

HABITS: Mapping[str, dict[str, Any]] = {
    "role chunk with the first token": {"role": "first"},
    "role chunk at once": {"role": "early"},
    "four tokens an event": {"tokens_per_event": 4},
    "two slots for four streams": {"max_running": 2},
}


def _vllm(document: Any) -> Said:
    said = {}
    for measure, name in (("TTFT", "ttft"), ("ITL", "itl"), ("TPOT", "tpot"), ("E2E", "e2el")):
        said |= {(measure, "mean"): document[f"mean_{name}_ms"], (measure, "p50"): document[f"p50_{name}_ms"]}
    return said | {("output", ""): document["output_throughput"]}


def _aiperf(document: Any) -> Said:
    names = {"TTFT": "time_to_first_token", "ITL": "inter_token_latency", "E2E": "request_latency"}
    said = {}
    for measure, name in names.items():
        said |= {(measure, "mean"): document[name]["avg"], (measure, "p50"): document[name]["p50"]}
    return said | {("output", ""): document["output_token_throughput"]["avg"]}


def _guidellm(document: Any) -> Said:
    metrics = document["benchmarks"][0]["metrics"]
    names = {
        "TTFT": ("time_to_first_token_ms", 1),
        "ITL": ("inter_token_latency_ms", 1),
        "TPOT": ("time_per_output_token_ms", 1),
        "E2E": ("request_latency", 1000),
    }
    said = {}
    for measure, (name, scale) in names.items():
        found = metrics[name]["successful"]
        said |= {
            (measure, "mean"): found["mean"] * scale,
            (measure, "p50"): found["percentiles"]["p50"] * scale,
        }
    return said | {("output", ""): metrics["output_tokens_per_second"]["successful"]["mean"]}


READERS: Mapping[str, Callable[[Any], Said]] = {"vllm": _vllm, "aiperf": _aiperf, "guidellm": _guidellm}


@dataclass(frozen=True)
class Row:
    habit: str
    tool: str
    figure: str
    here: float | None
    predicted: float
    said: float
    allowed: float

    @property
    def holds(self) -> bool:
        return abs(self.said - self.predicted) <= self.allowed

    def __str__(self) -> str:
        here = "" if self.here is None else f"{self.here:.2f}"
        verdict = "yes" if self.holds else "**no**"
        return (
            f"| {self.habit} | {self.tool} | {self.figure} | {here} | {self.predicted:.2f} | {self.said:.2f} "
            f"| {self.said - self.predicted:+.2f} | {self.allowed:.2f} | {verdict} |"
        )


HEAD = (
    "| server | tool | figure | here | predicted | it said | off by | stated error | holds |\n"
    + "|---" * 9
    + "|"
)


def main() -> int:
    arguments = _arguments()
    elsewhere = dict(word.split("=", 1) for word in arguments.peer)
    peers = [(peer, found) for peer in PEERS if peer.name in READERS and (found := peer.found(elsewhere))]
    if not peers:
        print(
            "error: none of vllm, aiperf, guidellm is here\nhint: --peer vllm=VENV/bin/vllm", file=sys.stderr
        )
        return 3
    print(HEAD)
    holds = True
    for habit in arguments.only or HABITS:
        for row in _habit(habit, peers, arguments.tokenizer):
            print(row, flush=True)
            holds = holds and row.holds
    return 0 if holds else 1


def _habit(habit: str, peers: list[tuple[Peer, str]], tokenizer: Path | None) -> Iterator[Row]:
    with (
        tempfile.TemporaryDirectory() as out,
        running(ttft_ms=TTFT_MS, gap_ms=GAP_MS, tokens=TOKENS, precise=True, **HABITS[habit]) as server,
    ):
        folder = _measured(server.url, Path(out))
        summary = folder.read_json("summary.json")["cells"][0]
        records, facts = folder.read_cell(folder.cells()[0])
        for peer, executable in peers:
            teller = replace(peer, read=READERS[peer.name])
            try:
                said, _ = teller.run(executable, server.url, REQUESTS, STREAMS, TOKENS, tokenizer)
            except PeerError as error:
                raise SystemExit(f"{peer.name}: {error}") from error
            view = recompute([TOOLS[peer.name]], records, facts)[peer.name]
            yield from _rows(habit, peer.name, view, said, summary)


def _measured(url: str, out: Path) -> RunFolder:
    words = ["run", "--scenario", "fixed-length", "--backends", f"openai={url}", "--out", str(out)]
    words += ["--concurrency", str(STREAMS), "--requests", str(REQUESTS), "--input-tokens", "16"]
    words += ["--set", "load.warmup_requests=0"]  # the tools have none before theirs
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        status = bench([*words, "--output-tokens", str(TOKENS)])
    assert status == 0, f"bench run ended with {status}"
    (path,) = out.iterdir()
    return open_run(str(path), out)


def _rows(habit: str, tool: str, view: View, said: Said, cell: Mapping[str, Any]) -> Iterator[Row]:
    for figure in view.figures:
        key = (figure.measure, figure.statistic)
        # A mean from the send carries the tool's slowest starts, which are no matter of definition.
        slow = figure.measure in FROM_SEND and figure.statistic == "mean"
        if key not in said or figure.value is None or slow:
            continue
        share = LATENCY_SHARE if figure.statistic else RATE_SHARE
        least = 0.0 if not figure.statistic else LATENCY_MS if figure.measure in FROM_SEND else GAP_ERROR_MS
        allowed = max(share * figure.value, least)
        measure, _, statistic = figure.path.partition(".")
        here = (cell.get(measure) or {}).get(statistic) if statistic else cell.get(measure)
        name = f"{' '.join(filter(None, key))}, {figure.unit}"
        yield Row(habit, tool, name, here, figure.value, said[key], allowed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=EXECUTABLE")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="one that the tools can load")
    parser.add_argument("--only", action="append", choices=tuple(HABITS), metavar="HABIT")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
