"""result_summary.json of MLPerf's endpoints: series in ns, rates over one window."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.imports import serving
from harness.imports.exchange import restored
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, finite, wrong
from harness.imports.taken import LOAD, UNKNOWN_LOAD, Taken, of_reported
from harness.model import STATISTICS
from harness.model.exchanged import KEY, MLPERF_LATENCIES
from harness.model.numbers import short

TOOL = "MLPerf endpoints"
_KEYS = {"n_samples_issued", "n_samples_completed", "ttft", "duration_ns"}
_MOST_MS = 86_400e3
_MEANS = {  # read in its source of August 2026
    "ttft_ms": "first text, reasoning or tool call since the request was issued",
    "tpot_ms": "from the first text to the end, over the tokens of its own tokenizer after the first chunk",
    "e2e_ms": "from the issue to the end of the answer",
    "output_tokens_per_s": "tokens of its own tokenizer over the whole run",
    "requests_per_s": "answers over the whole run",
}


class _Series(msgspec.Struct, frozen=True):
    avg: float | None = None
    median: float | None = None
    percentiles: dict[str, float] = {}


class _File(msgspec.Struct):
    n_samples_issued: int
    n_samples_completed: int
    ttft: _Series
    tpot: _Series = _Series()
    latency: _Series = _Series()
    version: str | None = None
    n_samples_failed: int = 0
    state: str = "complete"
    complete: bool = True
    qps: float | None = None
    tps: float | None = None
    run_config: dict[str, Any] | None = None


def _read(document: Document) -> Iterator[Taken]:
    file, where = document.read_as(_File, TOOL), document.where
    config = file.run_config or {}
    if not file.complete and KEY not in config:  # of our own cells the field says more
        raise wrong(f"is of a run that did not end ({file.state})", where)
    reported: dict[str, float] = {}
    for metric, name in MLPERF_LATENCIES.items():
        series: _Series = getattr(file, name)
        found = {"mean": series.avg, "p50": series.median}
        for share, value in series.percentiles.items():
            found[f"p{share.removesuffix('.0')}"] = value
        for statistic in STATISTICS:
            if (nanoseconds := found.get(statistic)) is not None:
                if nanoseconds / 1e6 > _MOST_MS:
                    raise wrong(f"{name} of {short(nanoseconds)} ns: other units?", where)
                reported[f"{metric}.{statistic}"] = finite(nanoseconds / 1e6, name, where)
    for metric, rate in (("requests_per_s", file.qps), ("output_tokens_per_s", file.tps)):
        if rate is not None:
            reported[metric] = finite(rate, metric, where)
    if not reported:
        raise wrong("has no figures", where)
    # Its client counts what failed as completed too; its checker expects the two apart.
    both = file.n_samples_completed + file.n_samples_failed > file.n_samples_issued
    answered = file.n_samples_completed - (file.n_samples_failed if both else 0)
    pattern = config.get("load_pattern")
    settings = pattern if isinstance(pattern, dict) else {}
    most, rate = settings.get("target_concurrency"), settings.get("target_qps")
    cap = most if isinstance(most, int) else None
    load = serving.load(rate, cap)
    lacks = ["requests", "the model"]
    if load == UNKNOWN_LOAD:
        lacks.append(f"{LOAD} (run_config.load_pattern)")
    taken = Taken(
        tool=TOOL,
        version=file.version,
        level="summary",
        load=load,
        cap=cap,
        lacks=tuple(lacks),
        definitions=of_reported(_MEANS, TOOL, reported),
        reported=reported,
        answered=answered,
        failed=file.n_samples_failed,
        planned=file.n_samples_issued,
    )
    yield restored(taken, config.get(KEY), where)


READER = Reader(
    tool=TOOL,
    forms=(Form(_KEYS, _read),),
    rows=("MLPerf endpoints | `result_summary.json` | | summary | 0.1.0",),
)
