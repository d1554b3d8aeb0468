"""`aiperf profile`: profile_export.jsonl, a request on each line.

Where profile_export_aiperf.json lies next to it, version and load are known; alone, it is read as figures.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from harness.imports import serving
from harness.imports.reader import Form, Reader, refused
from harness.imports.source import Document, Percentiles, finite, next_to, plain, wrong
from harness.imports.taken import (
    ARRIVALS,
    INTENDED,
    LOAD,
    MOST_S,
    OUTCOMES,
    TEXTS,
    TOKENS,
    UNKNOWN_LOAD,
    Answer,
    Rows,
    Taken,
    after_gaps,
    agree,
    unix_ns,
    without_zone,
)
from harness.model import PERCENTILES, STATISTICS, Load, Requests
from harness.model.load import Abandonment
from harness.model.numbers import counted
from harness.records.layout import UNKNOWN, Outcome

TOOL = "aiperf"
_KEYS = {"metadata.request_start_ns", "metrics"}  # of a line
_SUMMARY_KEYS = {"aiperf_version", "request_count"}
_FAILED_KEYS = {"aiperf_version", "error_request_count"}  # where no request was answered
SUMMARY = "profile_export_aiperf.json"
_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3}
_PHASES = ("profiling", "warmup")
_REPEATED, _PHASE_LIST = "phases", "phase_manifest.json"  # a run with a warm-up repeats its figures by phase
_OTHERWISE = ("fixed_schedule", "user_centric")  # phases whose pace is neither a rate nor a concurrency
_HUNG_UP = "RequestCancellationError"
_FIGURES = {
    "ttft_ms": "time_to_first_token",
    "tpot_ms": "inter_token_latency",  # a mean of each request, whatever its name
    "e2e_ms": "request_latency",
    "requests_per_s": "request_throughput",
    "output_tokens_per_s": "output_token_throughput",
}


class _Value(msgspec.Struct, frozen=True):
    value: float | list[float] | None = None
    unit: str = ""


class _Metadata(msgspec.Struct):
    request_start_ns: int
    request_end_ns: int
    credit_issued_ns: object = None  # about when it was sent
    benchmark_phase: str = "profiling"
    was_cancelled: bool = False


class _Error(msgspec.Struct):
    code: int | None = None
    type: str | None = None
    message: str | None = None


class _Metrics(msgspec.Struct):
    time_to_first_token: _Value = _Value()
    request_latency: _Value = _Value()
    inter_chunk_latency: _Value = _Value()
    usage_prompt_tokens: _Value = _Value()
    usage_prompt_cache_read_tokens: _Value = _Value()
    input_sequence_length: _Value = _Value()
    usage_completion_tokens: _Value = _Value()
    output_sequence_length: _Value = _Value()


class _Line(msgspec.Struct):
    metadata: _Metadata
    metrics: _Metrics
    error: _Error | None = None


class Figure(Percentiles, frozen=True):
    unit: str = ""
    avg: float | None = None


class _Failed(msgspec.Struct):
    error_details: _Error
    count: Annotated[int, msgspec.Meta(ge=0)]


class _Summary(msgspec.Struct):
    aiperf_version: str | None = None
    request_count: Figure | None = None
    error_request_count: Figure | None = None
    time_to_first_token: Figure | None = None
    inter_token_latency: Figure | None = None
    request_latency: Figure | None = None
    request_throughput: Figure | None = None
    output_token_throughput: Figure | None = None
    error_summary: list[_Failed] | None = None
    start_time: str | None = None
    input_config: dict[str, Any] | None = None


def is_of_phase(path: Path) -> bool:
    """Whether it repeats, for one phase, what a file two folders above has."""
    phases = path.parent.parent
    return phases.name == _REPEATED and phases.with_name(_PHASE_LIST).is_file()


def _read(first: Document) -> Iterator[Taken]:
    about = next_to(first.path, SUMMARY, _Summary, TOOL)
    where = str(first.path)
    rows, own_counts = Rows(where), False
    phase = _phase(about, where)
    left = Outcome.ABANDONED if phase and _abandonment(phase) else Outcome.CANCELLED
    for document in first.source.documents():
        line = document.read_as(_Line, TOOL)
        answer = _answer(line, left, document.where)
        rows.add(answer)
        if answer.outcome is Outcome.OK and not answer.warmup:
            own_counts = own_counts or line.metrics.usage_completion_tokens.value is None
    rows.check_streamed()
    if about is not None:
        count = about.request_count.avg if about.request_count else None
        agree(f"request_count (in {SUMMARY})", count, len(rows.answered), where)
        if about.time_to_first_token is not None:
            average = about.time_to_first_token.avg
            stated_ms = average and average * _scale(about.time_to_first_token.unit, where)
            agree(f"time_to_first_token (in {SUMMARY})", stated_ms, rows.mean_ttft_ms, where)
    load = _load(phase, len(rows.measured), where)
    lacks = [INTENDED, TEXTS]
    if about is None:
        lacks.append(f"{SUMMARY}, which has version and model")
    if load == UNKNOWN_LOAD:
        lacks.append(LOAD)
    if own_counts:
        lacks.append(TOKENS)
    gaps = bool((rows.answered["pieces"] != UNKNOWN).all())
    if not gaps:
        lacks.append(f"{ARRIVALS} (inter_chunk_latency has it)")
    yield Taken(
        tool=TOOL,
        version=about.aiperf_version if about else None,
        level="records",
        took=f"{counted(len(rows), 'request')}: start, first text, {'gaps, ' if gaps else ''}end, tokens",
        load=load,
        cap=_cap(phase),
        records=rows.records(load.slots),
        model=_model(about),
        started_unix_ns=rows.began_unix_ns,
        facts=("answers", "outcomes", "tokens", "times", *(("arrivals",) if gaps else ())),
        lacks=tuple(lacks),
    )


def _answer(line: _Line, left: Outcome, where: str) -> Answer:
    """`left`: how a request ended that the tool hung up on."""
    about, metrics = line.metadata, line.metrics
    sent, end = about.request_start_ns / 1e9, about.request_end_ns / 1e9
    warmup = about.benchmark_phase == "warmup"
    if about.benchmark_phase not in _PHASES:
        raise wrong(f"benchmark_phase is '{about.benchmark_phase}'", where)
    ttft = _ms(metrics.time_to_first_token, "time_to_first_token", where)
    if line.error is not None or about.was_cancelled or ttft is None:
        message = (line.error.message or line.error.type or "") if line.error else ""
        result = _outcome(line.error, about.was_cancelled, left)
        if result is left and (issued_ns := plain(about.credit_issued_ns)):
            # Both times are too late by the wait until it hung up, in 0.13.0; the duration is right.
            sent, end = issued_ns / 1e9, issued_ns / 1e9 + end - sent
        return Answer(sent_s=sent, end_s=end, outcome=result, error=message, warmup=warmup)
    gaps, chunks = metrics.inter_chunk_latency, list[float]()
    whole = _ms(metrics.request_latency, "request_latency", where) or ttft
    first, last = sent + ttft / 1e3, sent + whole / 1e3
    if isinstance(gaps.value, list):
        scale = _scale(gaps.unit, where)
        chunks = after_gaps(first, (gap * scale / 1e3 for gap in gaps.value))
    elif whole == ttft:  # one chunk, which no gap follows
        chunks = [last]
    answer = Answer(
        sent_s=sent,
        first_s=first,
        last_s=last,
        end_s=max(end, chunks[-1] if chunks else last),
        prompt_tokens=_count(metrics.usage_prompt_tokens, metrics.input_sequence_length),
        cached_tokens=_count(metrics.usage_prompt_cache_read_tokens),
        output_tokens=_count(metrics.usage_completion_tokens, metrics.output_sequence_length),
        warmup=warmup,
    )
    return answer.of_chunks(chunks) if chunks else answer


def _outcome(error: _Error | None, cancelled: bool, left: Outcome) -> Outcome:
    """How a request without an answer ended."""
    if error and error.type == _HUNG_UP:
        return left
    if cancelled and not (error and error.code):
        return Outcome.CANCELLED
    if error is None:
        return Outcome.EMPTY
    return Outcome.HTTP_ERROR if error.code else OUTCOMES.get(error.type or "", Outcome.HTTP_ERROR)


def _ms(found: _Value, name: str, where: str) -> float | None:
    if found.value is None:
        return None
    if isinstance(found.value, list):
        raise wrong(f"{name} is a list", where)
    return finite(found.value * _scale(found.unit, where), name, where)


def _scale(unit: str, where: str) -> float:
    if unit not in _MS:
        raise wrong(f"a time in '{unit}'", where, hint=f"known: {', '.join(_MS)}")
    return _MS[unit]


def _count(*found: _Value) -> int | None:
    """The first that is there: the server's count before the tool's own."""
    return next((int(each.value) for each in found if isinstance(each.value, int | float)), None)


def _phase(about: _Summary | None, where: str) -> dict[str, Any] | None:
    """The profiling phase; None if no summary names phases."""
    phases = about.input_config.get("phases") if about and about.input_config else None
    if not isinstance(phases, list):
        return None
    profiling = [
        element for element in phases if isinstance(element, dict) and element.get("kind") != "warmup"
    ]
    if len(profiling) != 1:
        raise wrong(f"{len(profiling)} profiling phases; one is read", where)
    return profiling[0]


def _load(phase: dict[str, Any] | None, requests: int, where: str) -> Load:
    """The load of the profiling phase."""
    if phase is None or phase.get("type") in _OTHERWISE:
        return UNKNOWN_LOAD
    kind, rate = phase.get("type"), plain(phase.get("rate"))
    load = None
    if kind in ("poisson", "gamma", "constant") and rate:
        load = Load(kind="rate", value=rate, arrival=str(kind))
    if kind == "concurrency":
        load = serving.load(None, _cap(phase), requests=requests)
    if load:
        users = _abandonment(phase)
        return replace(load, abandonment=users) if users else load
    read = "concurrency, poisson, gamma and constant are read"
    raise wrong(f"a phase of type '{kind}', which is not read", where, hint=read)


def _abandonment(phase: dict[str, Any]) -> Abandonment | None:
    """The users who hang up (`--request-cancellation-rate`, in percent); None: nobody does."""
    match phase.get("cancellation"):
        case {"rate": int() | float() as percent, "delay": int() | float() as after_s}:
            if 0 < percent <= 100 and 0 <= after_s <= MOST_S:
                return Abandonment(share=percent / 100, after_s=after_s)
    return None


def _cap(phase: dict[str, Any] | None) -> int | None:
    """The limit that the phase names, next to a rate or alone."""
    most = plain(phase.get("concurrency")) if phase else None
    return int(most) if most else None


def _model(about: _Summary | None) -> str | None:
    match about.input_config if about else None:
        case {"models": {"items": [{"name": str(name)}, *_]}}:
            return name
    return None


def figures(about: object, where: str) -> dict[str, float]:
    """What the tool computed itself, at its place in a cell: also of GenAI-Perf, from which it descends.

    Raises SpecError for what is no amount, and where there is nothing.
    """
    reported: dict[str, float] = {}
    for metric, name in _FIGURES.items():
        figure: Figure | None = getattr(about, name)
        if figure is None or figure.avg is None:
            continue
        if not metric.endswith("_ms"):
            reported[metric] = finite(figure.avg, name, where)
            continue
        scale = _scale(figure.unit, where)
        for statistic, word in zip(STATISTICS, ("avg", *PERCENTILES), strict=True):
            if (value := getattr(figure, word)) is not None:
                reported[f"{metric}.{statistic}"] = finite(value * scale, name, where)
    if not reported:
        raise wrong("has no figures", where)
    return reported


def _read_summary(document: Document) -> Iterator[Taken]:
    about, where = document.read_as(_Summary, TOOL), document.where
    count = int(about.request_count.avg or 0) if about.request_count else None
    failed = int(about.error_request_count.avg or 0) if about.error_request_count else 0
    if failed and not count:
        what = f"has no answer: {counted(failed, 'request')} failed"
        raise wrong(what, where, hint="profile_export.jsonl next to it says why (--export-level records)")
    reported = figures(about, where)
    phase = _phase(about, where)
    left = min(_left(about), failed) if phase and _abandonment(phase) else 0
    lacks = ["requests (profile_export.jsonl has them)", *without_zone(about.start_time)]
    if phase is None or phase.get("type") in _OTHERWISE:
        lacks.append(f"{LOAD} (input_config.phases)" if phase is None else LOAD)
    yield Taken(
        tool=TOOL,
        version=about.aiperf_version,
        level="summary",
        load=_load(phase, count or 0, where),
        cap=_cap(phase),
        model=_model(about),
        started_unix_ns=unix_ns(about.start_time),
        lacks=tuple(lacks),
        definitions=serving.definitions("aiperf", reported, {"ITL": "tpot_ms"}),
        reported=reported,
        planned=(count or 0) + failed,
        answered=count,
        failed=None if count is None else failed - left,
        requests=_requests(count or 0, failed - left, left) if left else None,
    )


def _left(about: _Summary) -> int:
    """How many of the failed requests are users who hung up."""
    return sum(each.count for each in about.error_summary or () if each.error_details.type == _HUNG_UP)


def _requests(ok: int, failed: int, left: int) -> Requests:
    outcomes = {"ok": ok, "http_error": failed, "abandoned": left}
    return Requests(
        planned=ok + failed + left,
        unsent=0,
        sent=ok + failed + left,
        ok=ok,
        failed=failed,
        dropped=0,
        cancelled=0,
        impatient=left,
        warmup=0,
        outcomes={name: count for name, count in outcomes.items() if count},
    )


_OVER_RUNS = refused("has figures over several runs of aiperf", "import the runs")
READER = Reader(
    tool=TOOL,
    forms=(
        Form(_KEYS, _read, whole=True),
        Form(_SUMMARY_KEYS, _read_summary),
        Form(_FAILED_KEYS, _read_summary),
        Form({"metadata.num_profile_runs", "metrics"}, _OVER_RUNS, over_runs=True),
        Form({"per_combination_metrics"}, _OVER_RUNS, over_runs=True),
        Form(
            frozenset(),
            refused(
                "is Parquet, in which no tool writes its results",
                "aiperf's Parquet file has the server's metrics; profile_export.jsonl has the requests",
            ),
            begins=(b"PAR1",),
        ),
    ),
    rows=(
        "aiperf | `profile_export.jsonl` | `--export-level records` | records | 0.13.0",
        "aiperf | `profile_export_aiperf.json` | | summary | 0.13.0",
    ),
    alone=True,
)
