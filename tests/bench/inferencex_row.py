"""A row of InferenceX by its own scripts: its copy of vLLM's client, then its processing of the result.

    INFERENCEX=CHECKOUT python -m tests.bench.inferencex_row URL REQUESTS STREAMS TOKENS TOKENIZER OUT

Runs what its `benchmark_lib.sh` runs, without its containers, runners and GPU: the row says `hw` "none" and
one GPU, which only divides the rates by one. Needs aiohttp, numpy, tqdm and transformers.
"""

import os
import subprocess
import sys
from pathlib import Path

CLIENT = (
    "--backend vllm --dataset-name random --random-input-len 16 --random-range-ratio 1 --request-rate inf"
    " --ignore-eos --save-result --percentile-metrics ttft,tpot,itl,e2el --disable-tqdm"
)
ROW = {
    "RUNNER_TYPE": "none", "FRAMEWORK": "truth", "PRECISION": "none", "SPEC_DECODING": "none", "TP": "1",
    "EP_SIZE": "1", "DP_ATTENTION": "false", "DISAGG": "false", "MODEL_PREFIX": "truth", "IMAGE": "none",
}  # fmt: skip


def main() -> None:
    url, requests, streams, tokens, tokenizer, out = sys.argv[1:]
    utils = Path(os.environ["INFERENCEX"]).resolve() / "utils"
    load = (
        f"--base-url {url} --random-output-len {tokens} --num-prompts {requests} --max-concurrency {streams}"
    )
    model = f"--model truth --tokenizer {tokenizer} --result-dir {out} --result-filename r.json"
    client = [sys.executable, str(utils / "bench_serving" / "benchmark_serving.py")]
    subprocess.run([*client, *CLIENT.split(), *load.split(), *model.split()], check=True)
    row = {**ROW, "ISL": "16", "OSL": tokens, "RESULT_FILENAME": "r"}
    process = [sys.executable, str(utils / "process_result.py")]
    subprocess.run(process, env={**os.environ, **row}, cwd=out, check=True)


if __name__ == "__main__":
    main()
