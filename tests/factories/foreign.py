"""Result files as other tools write them, of a closed loop that is made up here: shapes, not measurements."""

import json
import random
from pathlib import Path
from typing import Any

TTFT_S, GAP_S, TOKENS, SLOTS = 0.1, 0.01, 16, 4


def vllm(seed: int = 0, *, slower: float = 1.0, requests: int = 120, **changes: Any) -> dict[str, Any]:
    """Of `--save-detailed`: a role chunk with the first token and a finish chunk with the last."""
    drawn = random.Random(seed)
    free = [1000.0] * SLOTS
    starts, ttfts, itls = [], [], []
    for _ in range(requests):
        slot = free.index(min(free))
        starts.append(free[slot] + 0.0002)
        ttfts.append(TTFT_S * slower * drawn.lognormvariate(0, 0.05))
        gaps = [GAP_S * slower * drawn.lognormvariate(0, 0.05) for _ in range(TOKENS - 1)]
        itls.append([1e-5, *gaps, 1e-5])
        free[slot] = starts[-1] + ttfts[-1] + sum(itls[-1])
    duration = max(free) - 1000.0
    latencies = [ttft + sum(gaps) for ttft, gaps in zip(ttfts, itls, strict=True)]
    document = {
        "date": f"20261124-08{seed % 60:02d}00", "endpoint_type": "openai-chat", "backend": "openai-chat",
        "model_id": "m", "tokenizer_id": "m", "num_prompts": requests, "request_rate": "inf",
        "burstiness": 1.0, "max_concurrency": SLOTS, "duration": duration, "completed": requests,
        "total_input_tokens": 16 * requests, "total_output_tokens": TOKENS * requests,
        "request_throughput": requests / duration, "output_throughput": TOKENS * requests / duration,
        "mean_ttft_ms": 1e3 * sum(ttfts) / requests, "median_ttft_ms": 1e3 * sorted(ttfts)[requests // 2],
        "p99_ttft_ms": 1e3 * max(ttfts), "mean_itl_ms": 1e3 * sum(map(sum, itls)) / sum(map(len, itls)),
        "input_lens": [16] * requests, "output_lens": [TOKENS] * requests, "ttfts": ttfts, "itls": itls,
        "latencies": latencies, "start_times": starts, "generated_texts": ["a [text]"] * requests,
        "errors": [""] * requests,
    }  # fmt: skip
    return document | changes


def answered(document: dict[str, Any], completed: int) -> dict[str, Any]:
    """With the rate that goes with so many answers."""
    return document | {"completed": completed, "request_throughput": completed / document["duration"]}


DETAIL = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors")


def vllm_summary(seed: int = 0, *, slower: float = 1.0, **changes: Any) -> dict[str, Any]:
    document = vllm(seed, slower=slower, **changes)
    return {key: value for key, value in document.items() if key not in DETAIL}


def aiperf_lines(seed: int = 0, *, slower: float = 1.0, requests: int = 120) -> list[dict[str, Any]]:
    """The same load as aiperf records it, in ms, on the clock of the day."""
    of = vllm(seed, slower=slower, requests=requests)
    day = 1_763_000_000 + 1000 * seed
    lines = []
    for start, ttft, gaps in zip(of["start_times"], of["ttfts"], of["itls"], strict=True):
        text = gaps[1:-1]  # its gaps are of chunks with text
        begun = round((day + start) * 1e9)
        lasted = ttft + sum(text)
        metrics = {
            "time_to_first_token": {"value": ttft * 1e3, "unit": "ms"},
            "inter_chunk_latency": {"value": [gap * 1e3 for gap in text], "unit": "ms"},
            "request_latency": {"value": lasted * 1e3, "unit": "ms"},
            "usage_completion_tokens": {"value": TOKENS, "unit": "tokens"},
            "usage_prompt_tokens": {"value": 16, "unit": "tokens"},
        }
        metadata = {"request_start_ns": begun, "request_end_ns": begun + round(lasted * 1e9),
                    "benchmark_phase": "profiling"}  # fmt: skip
        lines.append({"metadata": metadata, "metrics": metrics, "error": None})
    return lines


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path
