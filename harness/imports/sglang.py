"""`python -m sglang.bench_serving --output-file`: a line for each run, with `--output-details` or without."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.imports import serving
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, name_of
from harness.imports.taken import (
    LOAD,
    SENT,
    TEXTS,
    UNKNOWN_LOAD,
    VERSION,
    Answer,
    Rows,
    Taken,
    after_gaps,
    agree,
)
from harness.model import Load
from harness.model.numbers import counted
from harness.records.layout import Outcome

TOOL = "sglang bench_serving"
NAMES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_ms": "e2e_latency"}
_NATIVE = ("sglang", "sglang-native")  # backends of SGLang's own protocol; others speak OpenAI's
_REPLAY = f"{LOAD}: sessions of a trace, whose pace the file does not have"
_KEYS = {"backend", "dataset_name", "request_throughput", "total_output_tokens_retokenized"}


class _File(serving.Arrays):
    backend: str = ""
    mean_ttft_ms: float | None = None
    server_info: object = None
    dataset_name: str = ""

    def load(self, requests: int) -> Load:
        """Mooncake's sessions keep the trace's times with backend sglang, whatever rate the file names."""
        if self.request_rate == "trace" or (self.dataset_name, self.backend) == ("mooncake", "sglang"):
            return UNKNOWN_LOAD
        return serving.load(self.request_rate, self.max_concurrency, requests=requests)


def _read(document: Document) -> Iterator[Taken]:
    """Requests have no send times: latencies are computed again, rates are the tool's."""
    file, where = document.read_as(_File, TOOL), document.where
    stated = serving.figures(document, TOOL, NAMES)
    serving.check_duration(file, stated, where)
    info = file.server_info if isinstance(file.server_info, dict) else {}
    count = len(file.ttfts) or file.completed
    load = file.load(count)
    rates = {path: value for path, value in stated.items() if path.endswith("_per_s")}
    detailed = bool(file.ttfts)
    rows = _rows(file, where) if detailed else Rows(where)
    yield Taken(
        tool=TOOL,
        version=None,
        level="answers" if detailed else "summary",
        took=f"latencies of {counted(count, 'request')}" if detailed else "",
        load=load,
        cap=file.max_concurrency,
        records=rows.records(),
        model=name_of(info.get("served_model_name") or info.get("model_path")),
        facts=("answers", "outcomes", "tokens", "arrivals") if detailed else (),
        lacks=(
            VERSION,
            *((_REPLAY,) if load == UNKNOWN_LOAD else ()),
            SENT if detailed else "requests (run with --output-details)",
            *((TEXTS, "connecting, which is inside TTFT") if detailed else ()),
        ),
        definitions=serving.definitions("sglang", rates if detailed else stated),
        reported=rates if detailed else stated,
        answered=None if detailed else file.completed,
    )


def _rows(file: _File, where: str) -> Rows:
    rows = Rows(where)
    for index, gaps in enumerate(serving.gaps(file, ("input_lens", "output_lens", "ttfts"), where)):
        tokens, ttft = file.output_lens[index], float(file.ttfts[index])
        result, error = file.outcome(index)
        if result is not Outcome.OK:
            rows.add(Answer(sent_s=0.0, outcome=result, error=error))
            continue
        first_tokens = 0
        if file.backend in _NATIVE:
            gaps, first_tokens = _of_chunks(np.array(gaps)), (tokens or 0) - len(gaps)
        answer = Answer(
            sent_s=0.0,
            prompt_tokens=file.input_lens[index],
            output_tokens=tokens,
            first_tokens=first_tokens if first_tokens > 0 else None,
        )
        rows.add(answer.of_chunks(after_gaps(ttft, gaps)))
    agree("completed", file.completed, len(rows.answered), where)
    agree("mean_ttft_ms", file.mean_ttft_ms, rows.mean_ttft_ms, where)
    return rows


def _of_chunks(gaps: NDArray[np.float64]) -> list[float]:
    """The gaps between chunks. Of its own protocol the tool writes the gap before a chunk divided by the
    chunk's tokens, once for each: equal ones in a row are one chunk's. To the nanosecond no two chunks take
    the same.
    """
    if not len(gaps):
        return []
    sums: list[float] = np.add.reduceat(gaps, np.flatnonzero(np.diff(gaps, prepend=-1.0))).tolist()
    return sums


READER = Reader(
    tool=TOOL,
    forms=(Form(_KEYS, _read),),
    rows=(
        "SGLang bench_serving | JSON lines | `--output-file F --output-details` | answers | 0.5.23",
        "SGLang bench_serving | JSON lines | `--output-file F` | summary | 0.5.23",
    ),
)
