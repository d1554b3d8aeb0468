"""Other load generators, where they are installed, on the same load and the same server.

Each is given the flags of its own documentation for one worker and a closed loop. TTFT is theirs: they count
from before connecting.
"""

import json
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, float]
_TIMEOUT_S = 600


@dataclass(frozen=True)
class Peer:
    name: str
    program: str
    arguments: str  # with {url} {n} {c} {tokens} {tokenizer} {out}
    result: str  # the file below {out} it writes
    read: Callable[[Any], Row]  # milliseconds

    def installed(self) -> str | None:
        return shutil.which(self.program)

    def run(self, url: str, n: int, c: int, tokens: int, tokenizer: Path) -> Row:
        """What it says, and the CPU of its whole process tree per token, start-up included."""
        with tempfile.TemporaryDirectory() as out:
            words = self.arguments.format(
                url=url, n=n, c=c, tokens=tokens, tokenizer=tokenizer, out=out
            ).split()
            before = children_cpu_s()
            subprocess.run(
                [self.program, *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
                check=True,
            )
            cpu_s = children_cpu_s() - before
            document = json.loads(Path(out, self.result).read_text())
        return {**self.read(document), "cpu_us_per_token": cpu_s / (n * tokens) * 1e6}


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _read_serve(document: dict[str, float]) -> Row:
    return {
        "ttft_p50": document["p50_ttft_ms"],
        "ttft_p99": document["p99_ttft_ms"],
        "itl_p99": document["p99_itl_ms"],
        "wall_s": document["duration"],
        "tokens_per_s": document["output_throughput"],
    }


_SERVE = (
    " bench serve --backend openai-chat --endpoint /v1/chat/completions --base-url {url} --model truth"
    " --tokenizer {tokenizer} --dataset-name random --random-input-len 16 --random-output-len {tokens}"
    " --num-prompts {n} --max-concurrency {c} --percentile-metrics ttft,tpot,itl,e2el"
    " --metric-percentiles 50,99 --save-result --result-dir {out} --result-filename r.json --disable-tqdm"
    " --ready-check-timeout-sec 0"
)

PEERS = (
    Peer("vllm bench serve", "vllm", _SERVE, "r.json", _read_serve),
    Peer("vllm-rs bench serve", "vllm-rs", _SERVE + " --no-steady-state", "r.json", _read_serve),
)
