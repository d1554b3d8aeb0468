"""What `bench import` makes of files that the tools really wrote, against the server's own ledger.

    python -m tests.bench.imported_tools --tokenizer FOLDER --peer vllm=VENV/bin/vllm [--peer ...]

The scripted server answers after 100 ms and then every 10 ms, 16 tokens, in two habits. Each tool sends 40
requests in 4 streams, and its file is imported. Prints a markdown table: the median TTFT and the mean gap
between tokens as the server wrote them, as the tool says, and as the import has them; and how many figures of
the file (means, medians, rates) the import has as the file states them: those of a summary as they were read,
of records computed again as the tool means them. A tool is measured once more where one of them is another,
where an import of our own definition is further from the truth than the stated error, or where it did not
run. Exit code 1 where the second time is no better. `--keep`: the files. `vllm@0.33=PROGRAM` gives the
version, which the file does not name.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.cli.commands.imports import Found, made
from harness.metrics.peers import recompute, tool_named
from harness.metrics.peers.recompute import HERE
from harness.mockserver.process import running
from harness.model import CellResult
from harness.model.imported import SERVER
from harness.model.json_path import number_at
from harness.store import RunFolder
from harness.validity import RULES, unchecked
from tests.bench.again import again_once
from tests.bench.command import options
from tests.bench.peers import Peer, PeerError, peer_named
from tests.bench.printed import GAP, OTHERWISE, Said, printed

STREAMS, REQUESTS, TOKENS = 4, 40, 16
TTFT_MS, GAP_MS = 100.0, 10.0
HABITS: dict[str, dict[str, Any]] = {
    "role chunk with the first token": {"role": "first"},
    "role chunk at once": {"role": "early"},
}
ERROR_MS = {"ttft_ms.p50": 8.0, "tpot_ms.mean": 0.5}  # the tools' own lag: stamps taken in Python
HEAD = (
    "| server | tool | level | figure | server | it said | imported | bias of the tool | left | equal "
    "| rules |\n" + "|---" * 11 + "|"
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
    Kept("vllm-rs", "r.json", " --save-detailed"),
    Kept("vllm-rs", "r.json", ""),
    Kept("sglang", "r.json", " --output-details"),
    Kept("sglang", "r.json", ""),
    Kept("aiperf", "profile_export.jsonl", " --export-level records", " --export-level summary"),
    Kept("aiperf", "profile_export_aiperf.json", ""),
    Kept("guidellm", "r.json", ""),
    Kept("inference-perf", "per_request_lifecycle_metrics.json", " "),
    Kept("inference-perf", "summary_lifecycle_metrics.json", ""),
    Kept("genai-bench", "D*.json", ""),
    Kept("inferencex", "agg_r.json", ""),
    Kept("mlperf", "result_summary.json", ""),
    Kept("genai-perf", "profile_export.json", ""),
    Kept("genai-perf", "profile_export_genai_perf.json", ""),
    Kept("evalscope", "benchmark_data.db", ""),
    Kept("evalscope", "benchmark_summary.json", ""),
)
# Relative: what the files round; and rates of requests, over a time that the tool took itself.
EQUAL, EQUAL_RATE = 1e-3, 1e-2
# As which tool its requests are computed again, where that is another: their definitions are the same.
AS = {
    "vllm-rs": "vllm",
    "genai-bench": "inference-perf",
    "genai-perf": "aiperf",
    "evalscope": "inference-perf",
}


def main() -> int:
    arguments = _arguments()
    elsewhere = dict(word.split("=", 1) for word in arguments.peer)
    print(HEAD)
    holds = True
    for habit in arguments.only or HABITS:
        for name, executable in elsewhere.items():
            for kept in (one for one in KEPT if one.peer == peer_named(name).name):
                row = partial(_rows, habit, kept, name, executable, arguments)
                for line, good in again_once(row):
                    print(line, flush=True)
                    holds = holds and good
    return 0 if holds else 1


def _rows(
    habit: str, kept: Kept, name: str, executable: str, arguments: argparse.Namespace
) -> Iterator[tuple[str, bool]]:
    peer = peer_named(name)
    peer = replace(peer, arguments=peer.arguments.replace(kept.drop or "\0", "") + kept.more.rstrip())
    if kept.more:
        peer = replace(peer, config=peer.config.replace("per_request: false", "per_request: true"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "tool")
        out.mkdir()
        try:
            truth = _measured(peer, executable, HABITS[habit], out, arguments.tokenizer, arguments.requests)
            file, said = next(out.rglob(kept.files)), printed(peer.name, out)
        except (PeerError, LookupError, StopIteration, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}".replace("\n", " ")
            yield f"| {habit} | {name} | **did not run**: {why} |", False
            return
        if arguments.keep:
            place = arguments.keep / f"{habit.replace(' ', '-')}.{name}{'.detail' if kept.more else ''}"
            place.mkdir(parents=True)
            companions = ("profile_export_aiperf.json", "experiment_metadata.json")
            for one in {file, *(found for found in out.rglob("*") if found.name in companions)}:
                shutil.copy(one, place)
        version = name.partition("@")[2] or None
        run = made([Found(SERVER, [file], [])], Path(folder, "runs"), [str(file)], version)
        (cell,) = run.read_summary().cells
        equal, good = equal_figures(run, cell, name, said)
    shown = {
        "ttft_ms.p50": said.get(("TTFT", "p50"), said["TTFT", "mean"]),
        "tpot_ms.mean": said[GAP.get(peer.name, "ITL"), "mean"],
    }
    for path, meant in truth.items():
        line, near = _row(habit, cell, path, meant, shown[path], equal)
        yield line, near and good


def equal_figures(run: RunFolder, cell: CellResult, name: str, said: Said) -> tuple[str, bool]:
    """`9 of 10` figures of the file are those of the import, and whether it has none otherwise."""
    file = cell.imported
    assert file is not None
    paths: dict[str, str] = {measure: path for measure, (path, _) in HERE.items()}
    if name in ("aiperf", "genai-perf"):  # whose ITL is a mean of each request
        paths["ITL"] = "tpot_ms"
    found = {key: number_at(cell, ".".join(filter(None, (paths[key[0]], key[1])))) for key in said}
    if file.level != "summary":
        tool = tool_named(AS.get(name, name))
        view = recompute([tool], *run.read_cell(cell.cell))[tool.name]
        again = {(figure.measure, figure.statistic): figure.value for figure in view.figures}
        if file.level == "answers":  # which have no times: rates are the tool's own, and no gap is known
            again = {key: value for key, value in again.items() if key[1] and key[0] != "ITL"}
            found = {key: value for key, value in found.items() if not key[1]}
        else:
            found = {}
        found |= {key: value for key, value in again.items() if key[0] not in OTHERWISE.get(name, ())}
    both = {key: (value, said[key]) for key, value in found.items() if value is not None and key in said}
    allowed = {key: EQUAL if key[1] or file.level == "summary" else EQUAL_RATE for key in both}
    other = [key for key, (ours, theirs) in both.items() if abs(ours - theirs) > allowed[key] * abs(theirs)]
    named = "".join(
        f"; not {' '.join(filter(None, key))} ({both[key][0]:.6g}, {both[key][1]:.6g})" for key in other
    )
    return f"{len(both) - len(other)} of {len(said)}{named}", bool(both) and not other


def _row(habit: str, cell: CellResult, path: str, meant: float, said: float, equal: str) -> tuple[str, bool]:
    file = cell.imported
    assert file is not None
    found = number_at(cell, path)
    # Of single answers without their events the tool's clock is all there is.
    ours = path.partition(".")[0] not in file.definitions and file.level != "answers"
    left = None if found is None else found - meant
    good = left is None or not ours or abs(left) <= ERROR_MS[path]
    applied = len(RULES) - len(unchecked(file))
    words = [f"{meant:.2f}", f"{said:.2f}", "n/a" if found is None else f"{found:.2f}"]
    bias = f"{said - meant:+.2f}"
    rest = "n/a" if left is None else f"{left:+.2f}" if ours else f"{left:+.2f} (its meaning)"
    name = {"ttft_ms.p50": "TTFT p50, ms", "tpot_ms.mean": "gap mean, ms"}[path]
    cells = [habit, file.source, file.level, name, *words, bias, rest, equal, f"{applied} of {len(RULES)}"]
    return f"| {' | '.join(cells)} |", good


def _measured(
    peer: Peer, executable: str, options: dict[str, Any], out: Path, tokenizer: Path | None, requests: int
) -> dict[str, float]:
    """The ledger's own TTFT and gaps of the requests that the tool's figures are of."""
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS, tokens=TOKENS, precise=True, **options) as server:
        peer.leave_files(executable, server.url, requests, STREAMS, TOKENS, tokenizer, out)
        records = [one for one in server.truth()["records"] if one["outcome"] == "complete"][-requests:]
    firsts = [(one["write_ns"][0] - one["received_ns"]) / 1e6 for one in records]
    gaps = [(one["write_ns"][-1] - one["write_ns"][0]) / 1e6 / (one["tokens"] - 1) for one in records]
    return {"ttft_ms.p50": float(np.median(firsts)), "tpot_ms.mean": float(np.mean(gaps))}


def _arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--peer", action="append", required=True, metavar="NAME=EXECUTABLE")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="one that the tools can load")
    parser.add_argument("--requests", type=int, default=REQUESTS, metavar="N")
    parser.add_argument("--only", action="append", choices=tuple(HABITS), metavar="HABIT")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy the files there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
