"""Whether files of aiperf get the right verdict: of a server, and of one that is 5% slower.

    python -m tests.bench.imported_pair --tokenizer FOLDER --aiperf VENV/bin/aiperf

The scripted server answers after 100 ms and then every 10 ms, 16 tokens; the slower one takes 5% more. Eight
repeats of each, alternately, 60 requests in 4 streams. Prints what `bench compare` says of their requests and
of their summaries. Exit code 1 where a median is not called slower. `--keep`: the summaries, cut to what
`bench import` reads.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from harness.mockserver.process import running
from tests.bench.command import options
from tests.bench.peers import PEERS

REPEATS, REQUESTS, STREAMS, TOKENS = 8, 60, 4, 16
SIDES = {"base": 1.0, "slower": 1.05}
SUMMARY = "profile_export_aiperf.json"
READ = (
    "aiperf_version", "request_count", "error_request_count", "request_throughput", "request_latency",
    "time_to_first_token", "inter_token_latency", "output_token_throughput", "input_config",
)  # fmt: skip
MUST = ("ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50")


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(REPEATS):
            for side, factor in SIDES.items():
                _measure(arguments, factor, Path(folder, "requests", side, str(repeat)))
        for file in Path(folder).rglob(SUMMARY):
            document = json.loads(file.read_text())
            cut = {key: value for key, value in document.items() if key in READ}
            of = Path(folder, "summaries", *file.parts[-3:-1]).with_suffix(".json")
            of.parent.mkdir(parents=True, exist_ok=True)
            of.write_text(json.dumps(cut))
            if arguments.keep:
                kept = Path(arguments.keep, *of.parts[-2:])
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(cut))
        return max(_judged(Path(folder, level)) for level in ("requests", "summaries"))


def _measure(arguments: argparse.Namespace, factor: float, out: Path) -> None:
    peer = next(one for one in PEERS if one.name == "aiperf")
    peer = replace(
        peer, arguments=peer.arguments.replace(" --export-level summary", " --export-level records")
    )
    out.mkdir(parents=True)
    how = {"ttft_ms": 100 * factor, "gap_ms": 10 * factor, "tokens": TOKENS, "precise": True, "role": "first"}
    with running(**how) as server:
        peer.leave_files(arguments.aiperf, server.url, REQUESTS, STREAMS, TOKENS, arguments.tokenizer, out)
    for other in out.rglob("*"):
        if other.is_file() and other.name not in ("profile_export.jsonl", SUMMARY):
            other.unlink()


def _judged(level: Path) -> int:
    sides = [str(level / side) for side in SIDES]
    command = [sys.executable, "-m", "harness", "compare", *sides, "--floor", "2"]
    print(f"\nby their {level.name}:\n")
    print(subprocess.run(command, capture_output=True, text=True, check=False).stdout, flush=True)
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    found = {one["metric"]: one["verdict"] for one in json.loads(done.stdout)["pairs"][0]["findings"]}
    return int(any(found[metric] != "slower" for metric in MUST))


def _arguments() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--aiperf", required=True, metavar="EXECUTABLE")
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="FOLDER", help="one it can load")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the summaries there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
