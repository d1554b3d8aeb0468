"""What `bench import` makes of files that the tools really wrote, against the server's own ledger.

    python -m tests.bench.imported_tools --tokenizer FOLDER --peer vllm=VENV/bin/vllm [--peer ...]

The scripted server answers after 100 ms and then every 10 ms, 16 tokens, in two habits. Each tool sends 40
requests in 4 streams, and its file is imported. Prints a markdown table: the median TTFT and the mean gap
between tokens as the server wrote them, as the tool says, and as the import has them. Exit code 1 where an
import of our own definition is further from the truth than the stated error. `--keep`: the files.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.cli.imports import SERVER, Found, made
from harness.engines import shims
from harness.mockserver.process import running
from harness.model import CellResult
from harness.model.json_path import number_at
from harness.validity import RULES, unchecked
from tests.bench.peers import PEERS, Peer, PeerError

STREAMS, REQUESTS, TOKENS = 4, 40, 16
TTFT_MS, GAP_MS = 100.0, 10.0
HABITS: dict[str, dict[str, Any]] = {
    "role chunk with the first token": {"role": "first"},
    "role chunk at once": {"role": "early"},
}
ERROR_MS = {"ttft_ms.p50": 8.0, "tpot_ms.mean": 0.5}  # the tools' own lag: stamps taken in Python
HEAD = (
    "| server | tool | level | figure | server | it said | imported | bias of the tool | left | rules |\n"
    + "|---" * 10
    + "|"
)


@dataclass(frozen=True)
class Kept:
    """A file that a tool leaves, as it is imported."""

    peer: str
    files: str  # pattern below the folder
    more: str  # flags that make it write requests
    drop: str = ""  # flags of tests/bench/peers.py that do not


KEPT = (
    Kept("vllm", "r.json", " --save-detailed"),
    Kept("vllm", "r.json", ""),
    Kept("sglang", "r.json", " --output-details"),
    Kept("sglang", "r.json", ""),
    Kept("aiperf", "profile_export.jsonl", " --export-level records", " --export-level summary"),
    Kept("aiperf", "profile_export_aiperf.json", ""),
    Kept("guidellm", "r.json", ""),
    Kept("inference-perf", "per_request_lifecycle_metrics.json", " "),
    Kept("inference-perf", "summary_lifecycle_metrics.json", ""),
    Kept("genai-bench", "D*.json", ""),
)
SHIM = Path(shims.__file__).parent / "sglang_cpu"
# With its flags for the Rust client, in Python: the flags of threads are the Rust client's own.
_SGLANG = next(peer for peer in PEERS if peer.name == "sglang-rs")
SGLANG = replace(
    _SGLANG,
    name="sglang",
    arguments="-m sglang.bench_serving " + _SGLANG.arguments.replace(" --worker-threads 1", "").replace(
        " --disable-retokenize", ""),
    runner=(),
    environment={"PYTHONPATH": os.pathsep.join([str(SHIM), *filter(None, [os.environ.get("PYTHONPATH")])])},
)  # fmt: skip


def main() -> int:
    arguments = _arguments()
    elsewhere = dict(word.split("=", 1) for word in arguments.peer)
    print(HEAD)
    holds = True
    for habit in arguments.only or HABITS:
        for kept in KEPT:
            if kept.peer not in elsewhere:
                continue
            for line, good in _rows(habit, HABITS[habit], kept, elsewhere[kept.peer], arguments):
                print(line, flush=True)
                holds = holds and good
    return 0 if holds else 1


def _rows(
    habit: str, options: dict[str, Any], kept: Kept, executable: str, arguments: argparse.Namespace
) -> Iterator[tuple[str, bool]]:
    peer = next((one for one in (SGLANG, *PEERS) if one.name == kept.peer), SGLANG)
    peer = replace(peer, arguments=peer.arguments.replace(kept.drop or "\0", "") + kept.more.rstrip())
    if kept.more:
        peer = replace(peer, config=peer.config.replace("per_request: false", "per_request: true"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "tool")
        out.mkdir()
        truth = _measured(peer, executable, options, out, arguments.tokenizer, arguments.requests)
        file = next(out.rglob(kept.files))
        said = _said(kept.peer, out)
        if arguments.keep:
            place = arguments.keep / f"{habit.replace(' ', '-')}.{kept.peer}{'.detail' if kept.more else ''}"
            place.mkdir(parents=True)
            beside = ("profile_export_aiperf.json", "experiment_metadata.json")
            for one in {file, *(found for name in beside for found in out.rglob(name))}:
                shutil.copy(one, place)
        run = made([Found(SERVER, [file], [])], Path(folder, "runs"), [str(file)])
        (cell,) = run.read_summary().cells
    for path, meant in truth.items():
        yield _row(habit, cell, path, meant, said[path])


def _row(habit: str, cell: CellResult, path: str, meant: float, said: float) -> tuple[str, bool]:
    file = cell.imported
    assert file is not None
    found = number_at(cell, path)
    ours = path.partition(".")[0] not in file.definitions
    left = None if found is None else found - meant
    good = left is None or not ours or abs(left) <= ERROR_MS[path]
    applied = len(RULES) - len(unchecked(file))
    words = [f"{meant:.2f}", f"{said:.2f}", "n/a" if found is None else f"{found:.2f}"]
    bias = f"{said - meant:+.2f}"
    rest = "n/a" if left is None else f"{left:+.2f}" if ours else f"{left:+.2f} (its meaning)"
    name = {"ttft_ms.p50": "TTFT p50, ms", "tpot_ms.mean": "gap mean, ms"}[path]
    cells = [habit, file.source, file.level, name, *words, bias, rest, f"{applied} of {len(RULES)}"]
    return f"| {' | '.join(cells)} |", good


def _measured(
    peer: Peer, executable: str, options: dict[str, Any], out: Path, tokenizer: Path | None, requests: int
) -> dict[str, float]:
    """The ledger's own TTFT and gaps of the requests that the tool's figures are of."""
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS, tokens=TOKENS, precise=True, **options) as server:
        try:
            peer.leave_files(executable, server.url, requests, STREAMS, TOKENS, tokenizer, out)
        except PeerError as error:
            raise SystemExit(f"{peer.name}: {error}") from error
        records = [one for one in server.truth()["records"] if one["outcome"] == "complete"][-requests:]
    firsts = [(one["write_ns"][0] - one["received_ns"]) / 1e6 for one in records]
    gaps = [(one["write_ns"][-1] - one["write_ns"][0]) / 1e6 / (one["tokens"] - 1) for one in records]
    return {"ttft_ms.p50": float(np.median(firsts)), "tpot_ms.mean": float(np.mean(gaps))}


_SUMMARIES = {
    "aiperf": "profile_export_aiperf.json",
    "inference-perf": "summary_lifecycle_metrics.json",
    "genai-bench": "D*.json",
}


def _said(peer: str, out: Path) -> dict[str, float]:
    """The tool's own TTFT, and the figure that it shows for the time between tokens."""
    name = _SUMMARIES.get(peer, "r.json")
    document: Any = json.loads(next(out.rglob(name)).read_text())
    if peer == "aiperf":
        first, gap = document["time_to_first_token"]["p50"], document["inter_token_latency"]["avg"]
    elif peer == "inference-perf":
        latency = document["successes"]["latency"]
        first, gap = (
            1e3 * latency["time_to_first_token"]["median"],
            1e3 * latency["time_per_output_token"]["mean"],
        )
    elif peer == "genai-bench":
        stats = document["aggregated_metrics"]["stats"]
        first, gap = 1e3 * stats["ttft"]["p50"], 1e3 * stats["tpot"]["mean"]
    elif peer == "guidellm":
        metrics = document["benchmarks"][0]["metrics"]
        first = metrics["time_to_first_token_ms"]["successful"]["percentiles"]["p50"]
        gap = metrics["time_per_output_token_ms"]["successful"]["mean"]
    else:
        first, gap = document["median_ttft_ms"], document["mean_itl_ms"]
    return {"ttft_ms.p50": first, "tpot_ms.mean": gap}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=EXECUTABLE")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="one that the tools can load")
    parser.add_argument("--requests", type=int, default=REQUESTS, metavar="N")
    parser.add_argument("--only", action="append", choices=tuple(HABITS), metavar="HABIT")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy the files there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
