"""genai-bench: a file for each scenario and load; experiment_metadata.json has version and model."""

from collections.abc import Iterator

import msgspec

from harness.errors import SpecError
from harness.imports import serving
from harness.imports.reader import Form, Reader, refused
from harness.imports.source import Document, Percentiles, finite, next_to, wrong
from harness.imports.taken import ARRIVALS, SENT, TEXTS, Answer, Rows, Taken, agree, as_name
from harness.metrics.peers import WHOLE_RUN
from harness.model import STATISTICS
from harness.model.numbers import counted
from harness.records.layout import Outcome

TOOL = "genai-bench"
_KEYS = {"aggregated_metrics", "individual_request_metrics"}
ABOUT = "experiment_metadata.json"
_ABOUT_KEYS = {"benchmark_version", "experiment_folder_name", "traffic_scenario"}
_UNITS = {"s": 1.0, "ms": 1e-3}
_TO_THE_END = f"{TOOL}: to the end of the stream, which is later than the last text"
_SOME = f"{_TO_THE_END}; without answers whose text it read within 1 ms"


class _Request(msgspec.Struct):
    ttft: float | None = None
    e2e_latency: float | None = None
    output_latency: float | None = None
    num_input_tokens: int | None = None
    num_output_tokens: int | None = None
    error_code: int | None = None
    error_message: str | None = None


class _Statistic(Percentiles, frozen=True):
    mean: float | None = None


class _Stats(msgspec.Struct, frozen=True):
    ttft: _Statistic = _Statistic()
    tpot: _Statistic = _Statistic()


class _Aggregated(msgspec.Struct):
    scenario: str
    iteration_type: str = "num_concurrency"
    num_concurrency: int = 0
    num_requests: int | None = None
    requests_per_second: float | None = None
    mean_output_throughput_tokens_per_s: float | None = None
    mean_input_throughput_tokens_per_s: float | None = None
    stats: _Stats = _Stats()


class _File(msgspec.Struct):
    aggregated_metrics: _Aggregated
    individual_request_metrics: list[_Request]
    unit: str = msgspec.field(name="_time_unit", default="s")


class _About(msgspec.Struct):
    benchmark_version: str | None = None
    api_model_name: str | None = None


def _read(document: Document) -> Iterator[Taken]:
    """Requests have no send times and no gaps: TTFT and E2E are computed again, TPOT and rates are the
    tool's.
    """
    file, where = document.read_as(_File, TOOL), document.where
    if file.unit not in _UNITS:
        raise wrong(f"a time in '{file.unit}'", where, hint=f"known: {', '.join(_UNITS)}")
    metrics, about = file.aggregated_metrics, _about(document)
    rows = _rows(file, where)
    reported = {
        path: finite(value, path, where)
        for path, value in (
            ("requests_per_s", metrics.requests_per_second),
            ("output_tokens_per_s", metrics.mean_output_throughput_tokens_per_s),
            ("input_tokens_per_s", metrics.mean_input_throughput_tokens_per_s),
        )
        if value is not None
    }
    for statistic in STATISTICS:
        if (value := getattr(metrics.stats.tpot, statistic)) is not None:
            reported[f"tpot_ms.{statistic}"] = finite(1e3 * _UNITS[file.unit] * value, "tpot", where)
    if metrics.iteration_type != "num_concurrency":
        raise wrong(
            f"an iteration over {metrics.iteration_type}, which is not read", where, hint="num_concurrency is"
        )
    lacks = [SENT, f"{ARRIVALS}, so ITL is not known", TEXTS]
    if about is None:
        lacks.append(f"{ABOUT}, which has version and model")
    yield Taken(
        tool=TOOL,
        version=about.benchmark_version if about else None,
        level="answers",
        took=f"latencies of {counted(len(rows), 'request')}",
        load=serving.load(None, metrics.num_concurrency or None, requests=len(rows)),
        records=rows.records(),
        model=about.api_model_name if about else None,
        variant=as_name(metrics.scenario, "").strip("-"),
        facts=("answers", "outcomes", "tokens"),
        lacks=tuple(lacks),
        definitions={path: f"{TOOL}: {WHOLE_RUN}" for path in sorted(reported) if path.endswith("_per_s")}
        | {"e2e_ms": _TO_THE_END, "tpot_ms": _SOME},
        reported=reported,
    )


def _rows(file: _File, where: str) -> Rows:
    scale, rows = _UNITS[file.unit], Rows(where)
    for request in file.individual_request_metrics:
        if request.error_code:
            error = request.error_message or str(request.error_code)
            rows.add(Answer(sent_s=0.0, outcome=Outcome.HTTP_ERROR, error=error))
            continue
        if request.ttft is None or request.e2e_latency is None:
            rows.add(Answer(sent_s=0.0, outcome=Outcome.EMPTY))
            continue
        first, last = (
            finite(request.ttft, "ttft", where) * scale,
            finite(request.e2e_latency, "e2e", where) * scale,
        )
        after = (last - first) / scale
        agree("output_latency", request.output_latency, after, where)
        rows.add(
            Answer(
                sent_s=0.0,
                first_s=first,
                last_s=last,
                end_s=last,
                prompt_tokens=request.num_input_tokens,
                output_tokens=request.num_output_tokens,
            )
        )
    rows.check_streamed()
    totals = file.aggregated_metrics
    agree("num_requests", totals.num_requests, len(rows), where)
    if (ttft := totals.stats.ttft.mean) is not None:
        agree("ttft", 1e3 * scale * ttft, rows.mean_ttft_ms, where)
    return rows


def _about(document: Document) -> _About | None:
    try:
        return next_to(document.path, ABOUT, _About, TOOL)
    except SpecError:
        raise wrong(f"{ABOUT} in its folder is damaged", document.where) from None


READER = Reader(
    tool=TOOL,
    forms=(
        Form(_KEYS, _read),
        Form(
            _ABOUT_KEYS,
            refused(
                f"has the settings of {TOOL} and no measurement",
                "import its folder, or the files next to it: one for each scenario and load",
            ),
        ),
    ),
    rows=("genai-bench | JSON of a scenario and load | | answers | 0.0.5",),
    alone=True,
)
