"""What a few lines of plain httpx measure: one client, `aiter_lines`, JSON read from each line as it comes.

python -m tests.bench.httpx_lines URL REQUESTS CONCURRENCY TOKENS RESULT
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np


async def ask(client: httpx.AsyncClient, url: str, tokens: int) -> list[float]:
    """When it was sent and when each text came."""
    body = {
        "model": "truth",
        "messages": [{"role": "user", "content": "hello there"}],
        "stream": True,
        "max_tokens": tokens,
    }
    stamps = [time.perf_counter()]
    async with client.stream("POST", url + "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                choices = json.loads(line[6:])["choices"]
                if choices and choices[0]["delta"].get("content"):
                    stamps.append(time.perf_counter())
    return stamps


async def load(url: str, requests: int, concurrency: int, tokens: int) -> list[list[float]]:
    answers: list[list[float]] = []

    async def slot(turns: Iterator[int]) -> None:
        answers.extend([await ask(client, url, tokens) for _ in turns])

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        turns = iter(range(requests))
        await asyncio.gather(*(slot(turns) for _ in range(concurrency)))
    return answers


def main() -> None:
    url, result = sys.argv[1], Path(sys.argv[5])
    answers = [np.array(stamps) * 1e3 for stamps in asyncio.run(load(url, *map(int, sys.argv[2:5])))]
    ttft_ms = [stamps[1] - stamps[0] for stamps in answers]
    gaps_ms = np.concatenate([np.diff(stamps[1:]) for stamps in answers])
    said = {
        "ttft_p50": np.percentile(ttft_ms, 50),
        "ttft_p99": np.percentile(ttft_ms, 99),
        "itl_p99": np.percentile(gaps_ms, 99),
    }
    result.write_text(json.dumps(said))


if __name__ == "__main__":
    main()
