"""How long the first start takes, from nothing to a figure: of bench in five places, and of other tools.

    python -m tests.bench.starts [--only NAME] [--tokenizer FOLDER]

Each start has an empty folder, home and cache; packages come over the network anew. The server is the
scripted one with a TTFT of 100 ms and a gap of 20 ms. `installed`: the tool is there; `first figure`: one was
printed; `all`: the last command has ended. Other tools run with --tokenizer (a folder that transformers can
read: here is no model hub), and are only installed without it. Prints a Markdown table; exits 1 where a start
failed.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.mockserver import running
from tests.bench.command import options
from tests.bench.peers import PEERS

_CHECKOUT = Path(__file__).resolve().parents[2]
_LIMIT_S = 900
_VENV = "python3 -m venv e && e/bin/pip install --quiet "
_NOTHING = "true"
_ACTION = r"""
mkdir r t && cd r && git init --quiet
for ms in 20 60; do echo $ms > ttft && git add . && git -c user.name=t -c user.email=t@t commit -qm $ms; done
printf '{"before": "%s"}' $(git rev-parse HEAD~1) > ../event
export RUNNER_TEMP=$PWD/../t GITHUB_EVENT_PATH=../event GITHUB_STEP_SUMMARY=../page GITHUB_OUTPUT=../out
export BENCH_ENGINE=truth
export BENCH_START="exec $PWD/../e/bin/bench truth --port \$PORT --gap-ms 20 --ttft-ms \$(cat ttft)"
export BENCH_OPTIONS='--concurrency 2 --requests 32 --output-tokens 16'
../e/bin/python {checkout}/action/measure.py; test $? = 1 && grep 'is slower' ../page
"""


@dataclass(frozen=True)
class Start:
    name: str
    install: str  # shell; the environment is `e`, or that of the checkout `c`
    use: str
    figure: str = r"TTFT p50 \d"


_SUGGESTED = r"""
e/bin/bench > page; cat page
PATH="$PWD/e/bin:$PATH" eval "$(grep -m1 '^ *bench run ' page)"
"""

_STARTS = (
    Start("empty folder", _VENV + "{wheel}", _SUGGESTED),
    Start(
        "laptop", "git clone --quiet {checkout} c && make --quiet -C c .venv/ready", "make --quiet -C c demo"
    ),
    Start("endpoint", _VENV + "{wheel}", "e/bin/bench {url} --minutes 1"),
    Start(
        "GPU box, dry",
        _VENV + "{wheel}",
        "e/bin/bench engines install vllm --device cuda --dry-run",
        figure=r"\d MB",
    ),
    Start("pull request", _VENV + "{checkout}", _ACTION, figure=r"TTFT p50 \d"),
)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    failed = 0
    print("| start | installed, s | first figure, s | all, s | packages | MB |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="starts-") as folder, running(ttft_ms=100, gap_ms=20) as server:
        build = [sys.executable, "-m", "build", "--outdir", folder, str(_CHECKOUT)]
        subprocess.run(build, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        known = {"checkout": str(_CHECKOUT), "wheel": str(wheel), "url": server.url}
        for start in (*_STARTS, *_peers(server.url, arguments.tokenizer)):
            if arguments.only in start.name:
                with tempfile.TemporaryDirectory(prefix="start-") as room:
                    failed += not _clocked(start, Path(room), known)
    return 1 if failed else 0


def _peers(url: str, tokenizer: Path | None) -> Iterator[Start]:
    for peer in PEERS:
        if peer.name in ("aiperf", "guidellm"):
            words = peer.arguments.format(url=url, n=40, c=4, tokens=16, tokenizer=tokenizer, out=".")
            yield Start(
                peer.name, _VENV + peer.program, f"e/bin/{peer.program} {words}" if tokenizer else "true"
            )
    yield Start("llama-benchy", _VENV + "llama-benchy", _NOTHING)


def _clocked(start: Start, room: Path, known: Mapping[str, str]) -> bool:
    began = time.monotonic()
    (room / "home").mkdir()
    environment = {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))},
        "HOME": f"{room}/home",
        "BENCH_CACHE": f"{room}/home/cache",
        "PIP_NO_CACHE_DIR": "1",
    }

    def run(command: str) -> Iterator[tuple[float, str]]:
        for name, value in known.items():
            command = command.replace(f"{{{name}}}", value)
        with subprocess.Popen(
            ["timeout", str(_LIMIT_S), "bash", "-c", command],
            cwd=room,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                yield time.monotonic() - began, line
        if process.returncode:
            raise OSError(f"exit code {process.returncode}")

    figure_s, line = None, ""
    try:
        line = "".join(line for _, line in run(start.install))
        installed_s = time.monotonic() - began
        for at_s, line in run(start.use):
            if figure_s is None and re.search(start.figure, line):
                figure_s = at_s
    except OSError as error:
        print(f"| {start.name} | {error}: {line.strip()} | | | | |", flush=True)
        return False
    all_s = time.monotonic() - began
    (site,) = [*room.glob("e/lib/python*/site-packages"), *room.glob("c/.venv/lib/python*/site-packages")]
    packages = len(list(site.glob("*.dist-info")))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    used = start.use != _NOTHING
    print(
        f"| {start.name} | {installed_s:.0f} | {'' if figure_s is None else f'{figure_s:.0f}'} "
        f"| {f'{all_s:.0f}' if used else ''} | {packages} | {size / 1e6:.0f} |",
        flush=True,
    )
    return True


if __name__ == "__main__":
    sys.exit(main())
