"""Other load generators, where they are installed, on the same load and the same server.

Each is given the flags of its own documentation for one worker and a closed loop. What is read are the TTFT
and the pooled gaps between chunks that it reports; it counts TTFT from before connecting. A tool that reports
gaps only as a mean per request has no ITL here.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.engines import shims
from tests.bench.tree_cpu import TreeCpu

Row = dict[str, float]
_TIMEOUT_S = 300
_TAIL_BYTES = 2000


class PeerError(Exception):
    """It did not run, or what it wrote is not what it used to write."""


@dataclass(frozen=True)
class Peer:
    name: str
    program: str
    arguments: str  # with {url} {n} {c} {tokens} {tokenizer} {out}
    result: str  # pattern of the file below {out} it writes
    read: Callable[[Any], Row]  # milliseconds
    environment: Mapping[str, str] = field(default_factory=dict)
    config: str = ""  # written to {out}/config.yml, with the same fields as [name]
    wants_tokenizer: bool = True
    runner: tuple[str, ...] = ()  # what runs it, where it is not a program by itself

    def found(self, elsewhere: Mapping[str, str]) -> str | None:
        """Where it was said to be, else its program on PATH."""
        if self.runner:
            return elsewhere.get(self.name)
        return shutil.which(elsewhere.get(self.name, self.program))

    def run(
        self, executable: str, url: str, n: int, c: int, tokens: int, tokenizer: Path | None
    ) -> tuple[Row, TreeCpu]:
        """What it says, and the CPU of its whole process tree."""
        with tempfile.TemporaryDirectory() as out:
            cpu = self.leave_files(executable, url, n, c, tokens, tokenizer, Path(out))
            log = Path(out, "log")
            try:
                document = json.loads(next(Path(out).rglob(self.result)).read_text())
                return self.read(document), cpu
            except (StopIteration, LookupError, TypeError, ValueError) as error:
                raise PeerError(f"{error!r} in its result\n{_tail(log)}") from error

    def leave_files(
        self, executable: str, url: str, n: int, c: int, tokens: int, tokenizer: Path | None, out: Path
    ) -> TreeCpu:
        """Its files in `out`."""
        fields = {"url": url, "n": n, "c": c, "tokens": tokens, "tokenizer": tokenizer, "out": out}
        words = [word.format(**fields) for word in self.arguments.split()]
        config = self.config
        for name, value in fields.items():
            config = config.replace(f"[{name}]", str(value))
        Path(out, "config.yml").write_text(config)
        environment = {**os.environ, **self.environment}
        return _run([*self.runner, executable, *words], environment, out, out / "log")


def _run(command: list[str], environment: Mapping[str, str], folder: Path, log: Path) -> TreeCpu:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=output, stderr=output, start_new_session=True
        )
    cpu = TreeCpu(process.pid)
    cpu.start()
    try:
        status = process.wait(_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise PeerError(f"not done after {_TIMEOUT_S} s\n{_tail(log)}") from None
    finally:
        cpu.stop()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status:
        raise PeerError(f"exit status {status}\n{_tail(log)}")
    return cpu


def _tail(log: Path) -> str:
    return log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _read_own(document: Row) -> Row:
    return document


def _read_serve(document: Row) -> Row:
    return {
        "ttft_p50": document["median_ttft_ms"],
        "ttft_p99": document["p99_ttft_ms"],
        "itl_p99": document["p99_itl_ms"],
    }


def _read_aiperf(document: Any) -> Row:
    ttft = document["time_to_first_token"]
    return {
        "ttft_p50": ttft["p50"],
        "ttft_p99": ttft["p99"],
        "itl_p99": document["inter_chunk_latency"]["p99"],
    }


def _read_genai_perf(document: Any) -> Row:
    ttft = document["time_to_first_token"]
    return {"ttft_p50": ttft["p50"], "ttft_p99": ttft["p99"]}


def _read_guidellm(document: Any) -> Row:
    ttft = document["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"]["percentiles"]
    return {"ttft_p50": ttft["p50"], "ttft_p99": ttft["p99"]}


def _read_inference_perf(document: Any) -> Row:
    latency = document["successes"]["latency"]
    ttft, gap = latency["time_to_first_token"], latency["inter_token_latency"]
    return {"ttft_p50": ttft["median"] * 1e3, "ttft_p99": ttft["p99"] * 1e3, "itl_p99": gap["p99"] * 1e3}


_SERVE = (
    "bench serve --backend openai-chat --endpoint /v1/chat/completions --base-url {url} --model truth"
    " --tokenizer {tokenizer} --dataset-name random --random-input-len 16 --random-output-len {tokens}"
    " --num-prompts {n} --max-concurrency {c} --percentile-metrics ttft,tpot,itl,e2el"
    " --metric-percentiles 50,99 --save-result --result-dir {out} --result-filename r.json --disable-tqdm"
    " --ready-check-timeout-sec 0"
)
_SGLANG = (
    "--backend sglang-oai-chat --base-url {url} --dataset-name random-ids --random-input-len 16"
    " --random-output-len {tokens} --random-range-ratio 1 --num-prompts {n} --max-concurrency {c}"
    " --output-file {out}/r.json --disable-tqdm --model truth --tokenizer {tokenizer} --worker-threads 1"
    " --disable-retokenize --warmup-requests 0"
)
_AIPERF = (
    "profile -m truth --url {url} --endpoint-type chat --streaming --concurrency {c} --request-count {n}"
    " --output-tokens-mean {tokens} --synthetic-input-tokens-mean 16 --tokenizer {tokenizer}"
    " --use-server-token-count --export-level summary --ui-type none --no-server-metrics --no-gpu-telemetry"
    " --workers-max 1 --record-processor-service-count 1 --output-artifact-dir {out}"
)
_GUIDELLM = (
    "run --backend kind=openai_http,target={url},model=truth,request_format=/v1/chat/completions"
    " --profile kind=concurrent,streams={c} --constraint kind=max_requests,count={n}"
    " --data kind=synthetic_text,prompt_tokens=16,output_tokens={tokens}"
    " --tokenizer kind=hf_auto,model={tokenizer} --output kind=json,path={out}/r.json --disable-console"
)
# Its random data works with the completion route only.
_INFERENCE_PERF = """\
load:
  type: concurrent
  num_workers: 1
  stages: [{num_requests: [n], concurrency_level: [c]}]
api: {type: completion, streaming: true}
server: {type: vllm, model_name: truth, base_url: "[url]", ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: "[tokenizer]"}
data:
  type: random
  input_distribution: {min: 16, max: 16, mean: 16, std_dev: 0, total_count: [n]}
  output_distribution: {min: [tokens], max: [tokens], mean: [tokens], std_dev: 0, total_count: [n]}
report:
  request_lifecycle: {summary: true, per_stage: false, per_request: false}
storage: {local_storage: {path: "[out]"}}
"""

_GENAI = (
    "benchmark --api-backend openai --api-base {url} --api-key none --api-model-name truth"
    " --model-tokenizer {tokenizer} --task text-to-text --traffic-scenario D(16,{tokens})"
    " --num-concurrency {c} --max-requests-per-run {n} --max-time-per-run 1"
    " --experiment-base-dir {out} --experiment-folder-name x"
)

# Its prompts come from a file. The report's folder is new.
_MLPERF = (
    "benchmark online --endpoints {url} --model truth --tokenizer {tokenizer} --streaming on"
    " --dataset perf:{out}/config.yml,format=.jsonl --num-samples {n} --duration 0"
    " --load-pattern concurrency --concurrency {c} --max-output-tokens {tokens} --workers 1"
    " --no-cpu-affinity --report-dir {out}/report"
)
_MLPERF_PROMPTS = """{"prompt": "Say something."}\n""" * 8


def _read_mlperf(document: Any) -> Row:
    ttft = document["ttft"]
    return {"ttft_p50": ttft["median"] / 1e6, "ttft_p99": ttft["percentiles"]["99"] / 1e6}


def _read_genai(document: Any) -> Row:
    stats = document["aggregated_metrics"]["stats"]["ttft"]
    return {"ttft_p50": stats["p50"] * 1e3, "ttft_p99": stats["p99"] * 1e3}


_EVALSCOPE = (
    "perf --api openai --url {url}/v1/chat/completions --model truth --parallel {c} --number {n}"
    " --prompt Hello. --max-tokens {tokens} --stream --no-test-connection --outputs-dir {out}"
    " --no-timestamp --name x"
)


def _read_evalscope(document: Any) -> Row:
    """Of its percentiles, a row for each."""
    found = {row["Percentiles"]: row for row in document}
    return {
        "ttft_p50": found["50%"]["TTFT (ms)"],
        "ttft_p99": found["99%"]["TTFT (ms)"],
        "itl_p99": found["99%"]["ITL (ms)"],
    }


# It starts `perf_analyzer` from PATH.
_GENAI_PERF = (
    "profile -m truth --url {url} --endpoint-type chat --streaming --concurrency {c} --request-count {n}"
    " --output-tokens-mean {tokens} --synthetic-input-tokens-mean 16 --tokenizer {tokenizer}"
    " --artifact-dir {out}"
)

_THIS_PROJECT = {"PYTHONPATH": str(Path(__file__).parents[2])}
_SGLANG_CPU = Path(shims.__file__).parent / "sglang_cpu"

PEERS = (
    Peer(
        "httpx",
        sys.executable,
        "-m tests.bench.httpx_lines {url} {n} {c} {tokens} {out}/r.json",
        "r.json",
        _read_own,
        _THIS_PROJECT,
        wants_tokenizer=False,
    ),
    Peer("vllm", "vllm", _SERVE, "r.json", _read_serve),
    Peer("vllm-rs", "vllm-rs", _SERVE + " --no-steady-state", "r.json", _read_serve),
    Peer(
        "sglang-rs",
        "",
        _SGLANG,
        "r.json",
        _read_serve,
        _THIS_PROJECT,
        runner=(sys.executable, "-m", "tests.bench.sglang_rust"),
    ),
    # Needs the whole engine: `sglang=PYTHON` of its environment. Threads are the Rust client's own.
    Peer(
        "sglang",
        "",
        "-m sglang.bench_serving "
        + _SGLANG.replace(" --worker-threads 1", "").replace(" --disable-retokenize", ""),
        "r.json",
        _read_serve,
        {"PYTHONPATH": os.pathsep.join([str(_SGLANG_CPU), *filter(None, [os.environ.get("PYTHONPATH")])])},
    ),
    Peer("aiperf", "aiperf", _AIPERF, "profile_export_aiperf.json", _read_aiperf),
    Peer(
        "guidellm", "guidellm", _GUIDELLM, "r.json", _read_guidellm, {"GUIDELLM__MAX_WORKER_PROCESSES": "1"}
    ),
    Peer(
        "inference-perf",
        "inference-perf",
        "--config_file {out}/config.yml",
        "*summary_lifecycle_metrics.json",
        _read_inference_perf,
        config=_INFERENCE_PERF,
    ),
    Peer("genai-bench", "genai-bench", _GENAI, "D*.json", _read_genai, {"HF_HUB_OFFLINE": "1"}),
    # `inferencex=PYTHON`, with the checkout in INFERENCEX.
    Peer(
        "inferencex",
        "",
        "-m tests.bench.inferencex_row {url} {n} {c} {tokens} {tokenizer} {out}",
        "r.json",
        _read_serve,
        _THIS_PROJECT,
    ),
    Peer(
        "mlperf", "inference-endpoint", _MLPERF, "result_summary.json", _read_mlperf, config=_MLPERF_PROMPTS
    ),
    Peer("genai-perf", "genai-perf", _GENAI_PERF, "profile_export_genai_perf.json", _read_genai_perf),
    Peer(
        "evalscope",
        "evalscope",
        _EVALSCOPE,
        "benchmark_percentile.json",
        _read_evalscope,
        wants_tokenizer=False,
    ),
)


def peer_named(name: str) -> Peer:
    """`vllm`, or `vllm@0.33` where its version matters."""
    return next(peer for peer in PEERS if peer.name == name.partition("@")[0])
