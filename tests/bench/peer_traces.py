"""One trace, replayed by bench and by other tools, as the ledger of the scripted server has it.

    python -m tests.bench.peer_traces [--trace FILE] [--sessions FILE] --peer vllm=VENV/bin/vllm [--peer ...]

The server answers after 100 ms and then every 10 ms, and keeps every prefix. Without `--trace`: 200 requests
in Mooncake's form; without `--sessions`: twelve sessions of agents in Weka's form, both from a seed. Each
tool has the flags of its own documentation, and a tokenizer that counts like the server. Prints a Markdown
table for each file. The last figure is the tool's own; all others are of the server's ledger.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.mockserver.process import running
from harness.model.json_path import number_at
from harness.store import RunFolder
from tests.bench.command import options
from tests.bench.peers import PeerError
from tests.bench.printed import printed
from tests.bench.replay_commands import AT_ONCE, COMMANDS, DOES_NOT, replaying
from tests.bench.replays import Asked, Record, kept, mooncake, weka
from tests.factories.replays import write_mooncake, write_sessions, write_tokenizer

SERVER = {"dialect": "vllm", "model_name": "truth", "ttft_ms": 100, "gap_ms": 10, "cache_tokens": 100_000_000}
TEMPLATE = 6  # tokens of the server's chat template around the message of a user
LIMIT_S = 300
READ: Mapping[str, Callable[[Path], list[Asked]]] = {"mooncake": mooncake, "weka": weka}
ENDS = "prompt tokens | prompts exact | answers exact | prefix found | TTFT p50, server | tool |"
HEADS = {
    "mooncake": f"| tool | requests | late, ms | {ENDS}\n" + "|---" * 9 + "|",
    "weka": f"| tool | calls | sessions late, ms | early | waits off, ms | {ENDS}\n" + "|---" * 11 + "|",
}


def main() -> int:
    arguments = _arguments()
    tools = {"bench": sys.executable, **dict(word.split("=", 1) for word in arguments.peer)}
    with tempfile.TemporaryDirectory() as name:
        folder = (arguments.keep or Path(name)).absolute()
        tokenizer = write_tokenizer(folder / "hub")
        files = {
            "mooncake": arguments.trace or write_mooncake(folder / "mooncake.jsonl"),
            "weka": arguments.sessions or write_sessions(folder / "weka.jsonl"),
        }
        for form in arguments.only or files:
            file = files[form].absolute()
            asked = READ[form](file)
            print(f"\n{HEADS[form]}", flush=True)
            for tool, program in tools.items():
                if tool == "bench" or (tool, form) in COMMANDS:
                    print(_row(tool, program, form, file, asked, tokenizer, folder), flush=True)
            for (tool, of), why in DOES_NOT.items():
                if of == form:
                    print(f"| {tool} | does not read it: {why} |")
    return 0


def _row(
    tool: str, program: str, form: str, file: Path, asked: Sequence[Asked], tokenizer: Path, folder: Path
) -> str:
    out = folder / f"{form}.{tool}"
    out.mkdir()
    with running(**SERVER) as server:
        try:
            if tool == "bench":
                said = _bench(server.url, file, len(asked), out)
            else:
                peer = replaying(tool, form, file, folder / "hub", out)
                peer.leave_files(program, server.url, len(asked), 0, 0, tokenizer, out)
                said = printed(peer.name, out)["TTFT", "p50"]
        except (PeerError, LookupError, StopIteration, TypeError, ValueError) as error:
            return f"| {tool} | **did not run**: {type(error).__name__}: {error} |".replace("\n", " ")
        records = server.truth()["records"]
    (out / "ledger.json").write_text(json.dumps(records))
    return f"| {tool} | {' | '.join(_cells(tool, form, asked, records))} | {said:.1f} |"


def _bench(url: str, file: Path, requests: int, out: Path) -> float:
    """Its TTFT p50. The limits are those of the study in docs/traces.md: by default prompts are cut."""
    words = ["run", "--trace", str(file), "--replay-speed", "1", "--backends", f"vllm={url}"]
    words += ["--repeats", "1", "--set", "load.warmup_requests=0", "--out", str(out / "runs")]
    words += ["--requests", str(requests), "--no-probe", "--no-report", "--no-agreement"]
    words += ["--set", "prompts.max_input_tokens=200000", "--set", "prompts.max_output_tokens=5000"]
    with (out / "log").open("w") as log:
        command = [sys.executable, "-m", "harness", *words]
        subprocess.run(command, stdout=log, stderr=log, timeout=LIMIT_S, check=False)
    (run,) = (out / "runs").iterdir()
    (cell,) = RunFolder(run).read_summary().cells
    return number_at(cell, "ttft_ms.p50") or float("nan")


def _cells(tool: str, form: str, asked: Sequence[Asked], records: Sequence[Record]) -> Iterator[str]:
    result = kept(asked, records)
    traced, found = [one for one, _ in result.found], [record for _, record in result.found]
    beyond = [
        record["prompt_tokens"] - TEMPLATE * ("chat" in record["path"]) - one.prompt
        for one, record in result.found
    ]
    prompts = sum(one.prompt for one in traced)
    first = [(one["write_ns"][0] - one["received_ns"]) / 1e6 for one in found if one["write_ns"]]
    yield f"{len(found)} of {len(asked)}" + (f", {result.others} more" if result.others else "")
    yield "all at once" if (tool, form) in AT_ONCE else _spread(result.late)
    if form == "weka":
        yield str(result.early)
        yield _spread(result.wait_errors)
    yield f"{prompts + sum(beyond):,} of {prompts:,}"
    yield str(beyond.count(0))
    yield str(sum(record["tokens"] == one.answer for one, record in result.found))
    yield f"{sum(one['cached_tokens'] for one in found):,} of {sum(one.shared for one in traced):,}"
    yield f"{np.median(first):.1f}" if first else "n/a"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "n/a"
    return " / ".join(f"{value:.1f}" for value in (*np.percentile(values, (50, 99)), max(values)))


def _arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=EXECUTABLE")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="in Mooncake's form")
    parser.add_argument("--sessions", type=Path, metavar="FILE", help="in Weka's form")
    parser.add_argument("--only", action="append", choices=tuple(READ), metavar="FORM")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for what the tools write")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
