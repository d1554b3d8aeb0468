"""Whether `bench report --as TOOL` says what the tool itself says.

    python -m tests.bench.peer_views --tokenizer FOLDER --peer vllm=VENV/bin/vllm [--peer ...] [--only HABIT]

For each habit of the scripted server: one closed loop measured by `bench run`, whose records are then read as
each tool would, and the same load by the tool itself against the same server. Prints one markdown table: what
stands here, what was predicted for the tool, what the tool said, and whether that is within the stated error.
What is left between the last two is the tool's own lag: its stamps are taken in Python, ours by the kernel.
`vllm@0.33=PROGRAM` asks for the definitions of that version. A tool that did not run, or whose figures are
off, is measured once more. Exit code 1 where the second time is no better.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from harness.cli.main import main as bench
from harness.metrics.peers import View, recompute, tool_named
from harness.mockserver.process import running
from harness.store import RunFolder, open_run
from tests.bench.again import again_once
from tests.bench.command import options
from tests.bench.peers import PeerError, peer_named
from tests.bench.printed import OTHERWISE, Said, printed

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
    peers = dict(word.split("=", 1) for word in arguments.peer)
    print(HEAD)
    holds = True
    for habit in arguments.only or HABITS:
        for line, good in _habit(habit, peers, arguments.tokenizer):
            print(line, flush=True)
            holds = holds and good
    return 0 if holds else 1


def _habit(habit: str, peers: Mapping[str, str], tokenizer: Path | None) -> Iterator[tuple[str, bool]]:
    with (
        tempfile.TemporaryDirectory() as out,
        running(ttft_ms=TTFT_MS, gap_ms=GAP_MS, tokens=TOKENS, precise=True, **HABITS[habit]) as server,
    ):
        folder = _measured(server.url, Path(out))
        summary: Any = folder.read_json("summary.json")
        cell, (records, facts) = summary["cells"][0], folder.read_cell(folder.cells()[0])
        for name, executable in peers.items():
            tool = tool_named(name)
            view = recompute([tool], records, facts)[tool.name]
            rows = partial(_measured_by, habit, name, executable, server.url, tokenizer, view, cell)
            yield from again_once(rows)


def _measured_by(
    habit: str, name: str, executable: str, url: str, tokenizer: Path | None, view: View, cell: Any
) -> Iterator[tuple[str, bool]]:
    try:
        said = _said(name, executable, url, tokenizer)
    except (PeerError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}".replace("\n", " ")
        yield f"| {habit} | {name} | **did not run**: {why} |", False
        return
    for row in _rows(habit, name, view, said, cell):
        yield str(row), row.holds


def _said(name: str, executable: str, url: str, tokenizer: Path | None) -> Said:
    with tempfile.TemporaryDirectory() as out:
        peer = peer_named(name)
        peer.leave_files(executable, url, REQUESTS, STREAMS, TOKENS, tokenizer, Path(out))
        return printed(peer.name, Path(out))


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
        if key not in said or figure.value is None or slow or figure.measure in OTHERWISE.get(tool, ()):
            continue
        share = LATENCY_SHARE if figure.statistic else RATE_SHARE
        least = 0.0 if not figure.statistic else LATENCY_MS if figure.measure in FROM_SEND else GAP_ERROR_MS
        allowed = max(share * figure.value, least)
        measure, _, statistic = figure.path.partition(".")
        here = (cell.get(measure) or {}).get(statistic) if statistic else cell.get(measure)
        name = f"{' '.join(filter(None, key))}, {figure.unit}"
        yield Row(habit, tool, name, here, figure.value, said[key], allowed)


def _arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--peer", action="append", required=True, metavar="NAME=EXECUTABLE")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="one that the tools can load")
    parser.add_argument("--only", action="append", choices=tuple(HABITS), metavar="HABIT")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
