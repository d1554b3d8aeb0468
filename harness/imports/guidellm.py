"""`guidellm run --output kind=json`: benchmarks, each with its requests by how they ended."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.imports import serving
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, name_of, plain, wrong
from harness.imports.taken import (
    ARRIVALS,
    INTENDED,
    LOAD,
    TEXTS,
    UNKNOWN_LOAD,
    Answer,
    Rows,
    Taken,
    agree,
)
from harness.model import Load
from harness.model.numbers import counted, short
from harness.records.layout import Outcome

TOOL = "guidellm"
_KEYS = {"metadata", "benchmarks"}
_FORMAT = 2
_NO_CAP = 10_240  # requests in flight: of a file whose user set no limit
_REPLAY = f"{LOAD}: a trace said when to send, and the unit of its times is not in the file"


class _Timings(msgspec.Struct):
    targeted_start: float | None = None
    resolve_start: float | None = None
    resolve_end: float | None = None
    request_start: float | None = None
    request_end: float | None = None
    first_token_iteration: float | None = None
    last_token_iteration: float | None = None
    token_iterations: int = 0


class _Info(msgspec.Struct):
    timings: _Timings
    error: str | None = None


class _Usage(msgspec.Struct):
    total_tokens: int | None = None


class _Request(msgspec.Struct):
    """`output_tokens` is the number of pieces of text where the server counted none."""

    info: _Info
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    output_metrics: _Usage | None = None

    @property
    def of_pieces(self) -> bool:
        by_server = self.output_metrics.total_tokens if self.output_metrics else self.output_tokens
        return self.output_tokens is not None and by_server is None


class _Requests(msgspec.Struct):
    successful: list[_Request] = []
    errored: list[_Request] = []
    incomplete: list[_Request] = []


class _Config(msgspec.Struct):
    strategy: dict[str, Any]
    backend: dict[str, Any] = {}


class _Distribution(msgspec.Struct):
    mean: float | None = None
    count: int | None = None


class _ByStatus(msgspec.Struct):
    successful: _Distribution | None = None


class _Metrics(msgspec.Struct):
    time_to_first_token_ms: _ByStatus | None = None


class _State(msgspec.Struct):
    processing_requests: int = 0  # at the end: 0.8.1 at times leaves one out of its file


class _Benchmark(msgspec.Struct):
    config: _Config
    requests: _Requests
    metrics: _Metrics
    scheduler_state: _State = msgspec.field(default_factory=_State)


class _Metadata(msgspec.Struct):
    version: int
    guidellm_version: str


class _File(msgspec.Struct):
    metadata: _Metadata
    benchmarks: list[_Benchmark]


def _read(document: Document) -> Iterator[Taken]:
    file, where = document.read_as(_File, TOOL), document.where
    if file.metadata.version != _FORMAT:
        raise wrong(f"format {file.metadata.version} of {TOOL}; {_FORMAT} is read", where)
    for index, benchmark in enumerate(file.benchmarks):
        yield _benchmark(benchmark, file.metadata.guidellm_version, f"{where}: benchmarks[{index}]")


def _benchmark(benchmark: _Benchmark, version: str, where: str) -> Taken:
    requests = benchmark.requests
    ended = (
        [(request, Outcome.OK) for request in requests.successful]
        + [(request, Outcome.HTTP_ERROR) for request in requests.errored]
        + [(request, Outcome.CANCELLED) for request in requests.incomplete]
    )
    load, paced = _load(benchmark.config.strategy, len(ended), where)
    rows, unsent = Rows(where), 0
    for request, outcome in ended:
        answer = _answer(request, outcome, paced)
        if answer is None:
            unsent += 1
        else:
            rows.add(answer)
    rows.check_streamed()
    stated = benchmark.metrics.time_to_first_token_ms
    # The tool leaves requests of its own warm-up and cool-down out of its figures.
    if stated and stated.successful and stated.successful.count == len(rows.answered):
        agree("time_to_first_token_ms", stated.successful.mean, rows.mean_ttft_ms, where)
    lacks = [f"{ARRIVALS}, so ITL is not known", TEXTS]
    if unsent:
        lacks.append(f"the start of {counted(unsent, 'request')} not sent")
    if (lost := benchmark.scheduler_state.processing_requests) > 0:
        lacks.append(f"{counted(lost, 'request')} whose end it did not see")
    if any(request.of_pieces for request in requests.successful):
        lacks.append("the server's count of tokens: each piece of text is taken for one")
    if not paced:
        lacks.append(INTENDED)
    if load == UNKNOWN_LOAD:
        lacks.append(_REPLAY)
    return Taken(
        tool=TOOL,
        version=version,
        level="records",
        took=f"{counted(len(rows), 'request')}: start, first and last text, end, tokens",
        load=load,
        cap=_cap(benchmark.config.strategy) if paced else None,
        records=rows.records(load.slots),
        model=name_of(benchmark.config.backend.get("model")),
        started_unix_ns=rows.began_unix_ns,
        facts=("answers", "outcomes", "tokens", "times", *(("due",) if paced else ())),
        lacks=tuple(lacks),
    )


def _answer(request: _Request, outcome: Outcome, paced: bool) -> Answer | None:
    """None for a request that was never sent."""
    times = request.info.timings
    sent = times.request_start if times.request_start is not None else times.resolve_start
    if sent is None:
        return None
    end = times.request_end if times.request_end is not None else times.resolve_end
    intended = times.targeted_start if paced else None
    if outcome is not Outcome.OK:
        return Answer(
            sent_s=sent, end_s=end, intended_s=intended, outcome=outcome, error=request.info.error or ""
        )
    if times.first_token_iteration is None:
        return Answer(sent_s=sent, end_s=end, intended_s=intended, outcome=Outcome.EMPTY)
    return Answer(
        sent_s=sent,
        first_s=times.first_token_iteration,
        last_s=times.last_token_iteration,
        end_s=end,
        intended_s=intended,
        prompt_tokens=request.prompt_tokens,
        cached_tokens=request.cached_tokens,
        output_tokens=request.output_tokens,
        pieces=times.token_iterations,
    )


def _load(strategy: dict[str, Any], requests: int, where: str) -> tuple[Load, bool]:
    """The load, and whether each request had a time at which it was to be sent."""
    kind = strategy.get("type_") or strategy.get("kind")
    if kind == "synchronous":
        return serving.load(None, 1), False
    if kind == "concurrent":
        return serving.load(None, int(plain(strategy.get("streams")) or 1)), False
    if kind == "throughput":
        most = plain(strategy.get("max_concurrency"))
        return serving.load(None, int(most) if most else None, requests=requests), False
    rate = plain(strategy.get("rate"))
    if kind == "constant" and (ramp_s := plain(strategy.get("rampup_duration"))):
        what = f"a ramp of rates (of {short(ramp_s)} s), which is not read"
        raise wrong(what, where, hint="a rate that stays the same is read")
    if kind in ("constant", "poisson") and rate:
        return Load(kind="rate", value=rate, arrival=str(kind)), True
    if kind == "trace":
        return UNKNOWN_LOAD, True
    read = "synchronous, concurrent, throughput, constant, poisson and trace are read"
    raise wrong(f"the strategy '{kind}', which is not read", where, hint=read)


def _cap(strategy: dict[str, Any]) -> int | None:
    most = plain(strategy.get("max_concurrency"))
    return int(most) if most and most < _NO_CAP else None


READER = Reader(
    tool=TOOL,
    forms=(Form(_KEYS, _read),),
    rows=(
        "guidellm | JSON | `--output kind=json,path=F` | records, without the arrival of each token | 0.8.1",
    ),
)
