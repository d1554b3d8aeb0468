"""Whether memory of `bench import` follows the requests of a file, and not its size.

    python -m tests.bench.imported_memory [--gigabytes 2]

Files of the same 2,000 requests, made up in the shapes of vLLM and inference-perf: one with short texts, and
one whose texts fill so many gigabytes. Each is read in a process of its own. Its memory that is not mapped
from a file is sampled. Prints a markdown table. Exit code 1 where the large file needs more than 1.5 times
as much.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.bench.command import options
from tests.factories import foreign

REQUESTS, MOST = 2000, 1.5
_READ = """
import sys
from pathlib import Path
from harness.imports import read
_, (taken,) = read(Path(sys.argv[1]))
assert len(taken.records.requests) == int(sys.argv[2])
"""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0, metavar="N")
    text = int(parser.parse_args().gigabytes * 1e9 / REQUESTS)
    print(
        "| tool | short texts, MB | memory, MB | long texts, MB | memory, MB | ratio |",
        "|---|---|---|---|---|---|",
        sep="\n",
    )
    bounded = True
    with tempfile.TemporaryDirectory() as folder:
        for tool, write in (("vllm bench serve", _vllm), ("inference-perf", _inference_perf)):
            short, long = (_measured(Path(folder, "r.json"), write, size) for size in (100, text))
            ratio = long[1] / short[1]
            cells = [f"{value / 1e6:.0f}" for pair in (short, long) for value in pair]
            print(f"| {tool} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
            bounded = bounded and ratio <= MOST
    return 0 if bounded else 1


def _measured(file: Path, write: Callable[[int], Iterator[str]], text: int) -> tuple[int, int]:
    """Bytes of the file, and of memory."""
    with file.open("w") as out:
        out.writelines(write(text))
    command = [sys.executable, "-c", _READ, str(file), str(REQUESTS)]
    peak, process = 0, subprocess.Popen(command)
    while process.poll() is None:
        peak = max(peak, _own_bytes(process.pid))
        time.sleep(0.005)
    if process.returncode:
        raise SystemExit(f"{file} could not be read")
    return file.stat().st_size, peak


def _own_bytes(pid: int) -> int:
    """Of memory that is not mapped from a file; 0 where the process has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def _vllm(text: int) -> Iterator[str]:
    document = foreign.vllm(requests=REQUESTS)
    document.pop("generated_texts")
    yield json.dumps(document)[:-1] + ', "generated_texts": ['
    yield from _joined(json.dumps("x" * text) for _ in range(REQUESTS))
    yield "]}"


def _inference_perf(text: int) -> Iterator[str]:
    of = foreign.vllm(requests=REQUESTS)
    yield "["
    yield from _joined(
        json.dumps(_entry(start, ttft, gaps, text))
        for start, ttft, gaps in zip(of["start_times"], of["ttfts"], of["itls"], strict=True)
    )
    yield "]"


def _entry(start: float, ttft: float, gaps: list[float], text: int) -> dict[str, Any]:
    times = [start + ttft]
    for gap in gaps[1:-1]:
        times.append(times[-1] + gap)
    response = {"chunk_times": times, "output_tokens": len(times)}
    return {"start_time": start, "end_time": times[-1], "request": json.dumps({"model": "m"}),
            "response": "x" * text, "info": {"response_metrics": response}, "error": None}  # fmt: skip


def _joined(parts: Iterator[str]) -> Iterator[str]:
    for number, part in enumerate(parts):
        yield f"{',' if number else ''}{part}"


if __name__ == "__main__":
    sys.exit(main())
