"""inference-perf: per_request_lifecycle_metrics.json, or the summaries of the run and of its stages."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness.imports import serving
from harness.imports.reader import Files, Form, Reader, richest
from harness.imports.source import Document, all_next_to, finite, name_of, next_to, plain, wrong
from harness.imports.taken import (
    INTENDED,
    LOAD,
    TEXTS,
    TOKENS,
    UNKNOWN_LOAD,
    VERSION,
    Answer,
    Rows,
    Taken,
    agree,
    mean,
)
from harness.model import STATISTICS, Load
from harness.model.exchanged import REPORT_LATENCIES, as_median
from harness.model.numbers import counted
from harness.records.layout import Outcome

TOOL = "inference-perf"
_KEYS = {"start_time", "end_time", "info", "error"}  # of an entry
_SUMMARY_KEYS = {"load_summary", "successes", "failures"}
SUMMARY = "summary_lifecycle_metrics.json"
_STAGES = "stage_*_lifecycle_metrics.json"  # summaries, each of one load
_OF_STAGE = "the summary of each stage has it: per_stage: true"
_SAME_COUNT = 1e-3  # of tokens in an answer
_RATES = {
    "requests_per_s": "requests_per_sec",
    "output_tokens_per_s": "output_tokens_per_sec",
    "input_tokens_per_s": "input_tokens_per_sec",
}


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None


class _Response(msgspec.Struct):
    chunk_times: list[float] = []
    output_tokens: int | None = None
    server_usage: Usage | None = None


class _Info(msgspec.Struct):
    input_tokens: int | None = None
    response_metrics: _Response | None = None


class _Error(msgspec.Struct):
    error_type: str = ""
    error_msg: str = ""


class _Start(msgspec.Struct):
    start_time: float


class _Entry(_Start):
    """Keeps only the model's name of the texts."""

    end_time: float
    info: _Info | None = None
    error: _Error | None = None
    request: msgspec.Raw = msgspec.Raw()


def _read(first: Document) -> Iterator[Taken]:
    """The requests of all stages are in one file, and say nothing of their stage: a stage ends before the
    next begins.
    """
    where, stages = str(first.path), _stages(first.path)
    ends_s, parts = _ends_s(first, stages), [Rows(where) for _ in stages or (None,)]
    own_counts, model = False, None
    for document in first.source.documents():
        entry = document.read_as(_Entry, TOOL)
        model = model or _model(entry.request)
        answer, counted_here = _answer(entry)
        own_counts = own_counts or counted_here
        parts[bisect_left(ends_s, answer.sent_s)].add(answer)
    whole = (SUMMARY, next_to(first.path, SUMMARY, _Summary, TOOL))
    for rows, (name, about) in zip(parts, stages.items() or [whole], strict=True):
        rows.check_streamed()
        if about:
            _check(rows, name, about, where)
        load = _load(about.load_summary) if about and stages else UNKNOWN_LOAD
        lacks = [VERSION, INTENDED, TEXTS]
        if load == UNKNOWN_LOAD:
            lacks.append(f"{LOAD} ({_OF_STAGE})")
        if own_counts:
            lacks.append(TOKENS)
        yield Taken(
            tool=TOOL,
            version=None,
            level="records",
            took=f"{counted(len(rows), 'request')}: start, arrival of each text, end, tokens",
            load=load,
            records=rows.records(load.slots),
            model=model,
            facts=("answers", "outcomes", "tokens", "times", "arrivals"),
            lacks=tuple(lacks),
        )


def _stages(path: Path) -> dict[str, "_Summary"]:
    """The summaries of the stages by their names, in the order in which they ran."""
    names = sorted((file.name for file in all_next_to(path, _STAGES)), key=lambda name: (len(name), name))
    found = ((name, next_to(path, name, _Summary, TOOL)) for name in names)
    return {name: about for name, about in found if about}


def _ends_s(first: Document, stages: Mapping[str, "_Summary"]) -> list[float]:
    """When the last request of each stage but the last one was sent. Raises SpecError if their counts are not
    those of the requests.
    """
    if len(stages) < 2:
        return []
    starts = sorted(document.read_as(_Start, TOOL).start_time for document in first.source.documents())
    *ends, last = accumulate(about.successes.count + about.failures.count for about in stages.values())
    if last != len(starts):
        text = f"holds {counted(len(starts), 'request')}, and its {len(stages)} stages have {last}"
        raise wrong(text, str(first.path), hint=f"import the stages: {', '.join(stages)}")
    return [starts[end - 1] for end in ends]


def _check(rows: Rows, name: str, about: "_Summary", where: str) -> None:
    """Raises SpecError if a summary in the same folder differs. An answer without text is a success to the
    tool, and one of a single token has no TTFT.
    """
    agree(f"count (in {name})", about.successes.count, len(rows.ended_well), where)
    stated = (about.successes.latency.get("time_to_first_token") or {}).get("mean")
    good = rows.answered
    many = good[good["output_tokens"] != 1]
    found_ms = mean((1e3 * (many["first_s"] - many["sent_s"])).tolist())
    agree(f"time_to_first_token (in {name})", stated and 1e3 * stated, found_ms, where)


def _answer(entry: _Entry) -> tuple[Answer, bool]:
    """The answer, and whether its tokens are a count of the tool's own."""
    response = entry.info.response_metrics if entry.info else None
    if entry.error is not None:
        message = entry.error.error_msg or entry.error.error_type
        return Answer(
            sent_s=entry.start_time, end_s=entry.end_time, outcome=Outcome.HTTP_ERROR, error=message
        ), False
    if response is None or not response.chunk_times:
        return Answer(sent_s=entry.start_time, end_s=entry.end_time, outcome=Outcome.EMPTY), False
    usage = response.server_usage or Usage()
    counted = usage.completion_tokens
    answer = Answer(
        sent_s=entry.start_time,
        end_s=entry.end_time,
        prompt_tokens=usage.prompt_tokens or (entry.info.input_tokens if entry.info else None),
        cached_tokens=usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None,
        output_tokens=response.output_tokens if counted is None else counted,
    )
    return answer.of_chunks(response.chunk_times), counted is None


def _model(request: msgspec.Raw) -> str | None:
    """A request is JSON inside a string, if the tool was set to write it."""
    try:
        body: Any = msgspec.json.decode(msgspec.json.decode(request, type=str))
    except (msgspec.DecodeError, ValueError):
        return None
    return name_of(body.get("model")) if isinstance(body, dict) else None


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Part(msgspec.Struct):
    count: _Count = 0
    latency: dict[str, dict[str, float | None] | None] = {}
    throughput: dict[str, float | None] = {}
    output_tokens: dict[str, float | None] | None = None  # as the server counted them


class _Failures(msgspec.Struct):
    count: _Count = 0


class _Summary(msgspec.Struct):
    load_summary: dict[str, Any]
    successes: _Part
    failures: _Failures


def _read_summary(document: Document) -> Iterator[Taken]:
    about, where = document.read_as(_Summary, TOOL), document.where
    reported: dict[str, float] = {}
    for metric, name in REPORT_LATENCIES.items():  # whose names are those of this tool
        figure = about.successes.latency.get(name) or {}
        for statistic in STATISTICS:
            if (value := figure.get(as_median(statistic))) is not None:
                reported[f"{metric}.{statistic}"] = finite(1e3 * value, name, where)
    for metric, name in _RATES.items():
        if (value := about.successes.throughput.get(name)) is not None:
            reported[metric] = finite(value, name, where)
    if not reported:
        raise wrong("has no figures", where)
    load = _load(about.load_summary)
    lacks = [VERSION, "requests (report.request_lifecycle.per_request: true)", "the model"]
    lacks += _other_count(about.successes, reported)
    if load == UNKNOWN_LOAD:
        lacks.append(f"{LOAD} ({_OF_STAGE})")
    yield Taken(
        tool=TOOL,
        version=None,
        level="summary",
        load=load,
        lacks=tuple(lacks),
        definitions=serving.definitions("inference-perf", reported),
        reported=reported,
        answered=about.successes.count,
        failed=about.failures.count,
    )


def _other_count(answers: _Part, reported: Mapping[str, float]) -> Iterator[str]:
    """Says that its figures are not of the tokens that the server counted, where they are not."""
    rate, tokens_rate = reported.get("requests_per_s"), reported.get("output_tokens_per_s")
    if not rate or tokens_rate is None:
        return
    own, servers = tokens_rate / rate, (answers.output_tokens or {}).get("mean")
    if servers is None:
        yield TOKENS
    elif abs(own - servers) > _SAME_COUNT * servers:
        yield f"{TOKENS}, {own:.1f} in an answer where the server counted {servers:.1f}"


def _load(settings: dict[str, Any]) -> Load:
    most, rate = plain(settings.get("concurrency")), plain(settings.get("requested_rate"))
    return serving.load(None if most else rate, int(most or 0))


def _chosen(files: Files) -> Iterable[Path]:
    """The requests; of summaries those of stages, which the others repeat."""
    richer = list(richest(files))
    return [path for path in richer if path.match(_STAGES)] or richer


READER = Reader(
    tool=TOOL,
    forms=(
        Form(_KEYS, _read, whole=True),
        Form(_SUMMARY_KEYS, _read_summary),
    ),
    rows=(
        "inference-perf | `per_request_lifecycle_metrics.json` | "
        "`report.request_lifecycle`: `per_request: true`, `per_stage: true` | records | 0.7.0",
        "inference-perf | summary of the run or of a stage | "
        "`summary: true`, `per_stage: true` | summary | 0.7.0",
    ),
    alone=True,
    chosen=_chosen,
)
