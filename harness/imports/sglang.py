"""`python -m sglang.bench_serving --output-file`: a line for each run, with `--output-details` or without."""

from collections.abc import Iterator

import numpy as np

from harness.imports import serving
from harness.imports.source import Document
from harness.imports.taken import TEXTS, VERSION, WHEN, Answer, Rows, Taken, agree, mean
from harness.records.layout import Outcome

TOOL = "sglang bench_serving"
NAMES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_ms": "e2e_latency"}
KEYS = {"backend", "dataset_name", "request_throughput", "total_output_tokens_retokenized"}


class _File(serving.Arrays):
    mean_ttft_ms: float | None = None
    mean_itl_ms: float | None = None
    random_output_len: int | None = None
    server_info: object = None


def read(document: Document) -> Iterator[Taken]:
    """Requests have no send times: latencies are computed again, rates are the tool's."""
    file, where = document.read_as(_File, TOOL), document.where
    stated = serving.checked(serving.figures(serving.raw_keys(document, TOOL), NAMES), where)
    serving.check_duration(file, stated, where)
    info = file.server_info if isinstance(file.server_info, dict) else {}
    count = len(file.ttfts) or file.completed
    rates = {path: value for path, value in stated.items() if path.endswith("_per_s")}
    detailed = bool(file.ttfts)
    rows = _rows(file, where) if detailed else Rows(where)
    name = info.get("served_model_name") or info.get("model_path")
    taken = Taken(
        tool=TOOL,
        version=None,
        level="answers" if detailed else "summary",
        took=f"latencies of {count} requests" if detailed else f"figures of {count} answers",
        load=serving.load(file.request_rate, file.max_concurrency, None, count),
        records=rows.records(),
        model=name if isinstance(name, str) else None,
        planned=count,
        facts=("answers", "outcomes", "tokens", "arrivals") if detailed else ("answers",),
        lacks=(
            VERSION,
            WHEN,
            "when each request was sent" if detailed else "requests (run with --output-details)",
            *((TEXTS, "connecting, which is inside TTFT") if detailed else ()),
        ),
        definitions=serving.definitions("sglang", rates if detailed else stated),
        reported=rates if detailed else stated,
        answered=None if detailed else file.completed,
    )
    yield serving.capped(taken, file.max_concurrency)


def _rows(file: _File, where: str) -> Rows:
    names = ("input_lens", "output_lens", "ttfts")
    count = serving.equal_lengths({name: len(getattr(file, name)) for name in names}, where)
    rows, ttfts_ms = Rows(where), []
    for index, gaps in enumerate(serving.gaps(file.itls, count, where)):
        tokens, ttft = file.output_lens[index], float(file.ttfts[index])
        error = file.errors[index] if index < len(file.errors) else None
        result = serving.outcome(error, tokens, ttft)
        if result is not Outcome.OK:
            rows.add(Answer(sent_s=0.0, outcome=result, error=error or ""))
            continue
        ttfts_ms.append(ttft * 1e3)
        chunks = ttft + np.concatenate([[0.0], np.cumsum(gaps)])
        rows.add(
            Answer(
                sent_s=0.0,
                first_s=float(chunks[0]),
                last_s=float(chunks[-1]),
                end_s=float(chunks[-1]),
                prompt_tokens=file.input_lens[index],
                output_tokens=tokens,
                pieces=len(chunks),
                chunks_s=chunks,
            )
        )
    agree("completed", file.completed, len(ttfts_ms), where)
    agree("mean_ttft_ms", file.mean_ttft_ms, mean(ttfts_ms), where)
    return rows
