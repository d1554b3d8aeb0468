"""GenAI-Perf: profile_export.json has each request, profile_export_genai_perf.json has figures alone.

The program of the two that sends, Perf Analyzer, ends at the first request that fails and writes nothing.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec

from harness.imports import aiperf, serving
from harness.imports.inference_perf import Usage
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, finite, name_of, next_to, plain, wrong
from harness.imports.taken import (
    INTENDED,
    LOAD,
    TEXTS,
    UNKNOWN_LOAD,
    VERSION,
    Answer,
    Rows,
    Taken,
    agree,
    mean,
    of_reported,
)
from harness.model import Load
from harness.model.numbers import counted
from harness.records.layout import Outcome

TOOL = "genai-perf"
_KEYS = {"experiments", "service_kind"}
_SUMMARY_KEYS = {"input_config", "request_count", "request_latency", "request_throughput"}
_READ = "openai"  # of service kinds: others have no SSE
_NO_COUNT = "the server's count of tokens (the tool asks for none)"
_CONSTANT = "the distribution of arrivals (constant, as the tool sends by default, stands in)"
_ITS_TOKENS = "tokens of its own tokenizer"
_MEANT = {
    "ttft_ms": "first text since the actual send, not since the intended one; reasoning is no text",
    "tpot_ms": f"(last − first text) / (tokens − 1), {_ITS_TOKENS}",
    "e2e_ms": "actual send to the last text",
    "requests_per_s": "answers from the first send to the last answer",
    "output_tokens_per_s": f"{_ITS_TOKENS} from the first send to the last answer",
}


_Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None

    @property
    def has_content(self) -> bool:
        """Whether it is text by the tool's own meaning."""
        return bool(self.text or (self.delta and self.delta.content))

    @property
    def has_text(self) -> bool:
        delta = self.delta or _Delta()
        return self.has_content or bool(delta.reasoning_content or delta.reasoning or delta.tool_calls)


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


class _Response(msgspec.Struct):
    response: str = ""


class _Inputs(msgspec.Struct):
    payload: str = ""


class _Request(msgspec.Struct):
    timestamp: _Nanoseconds
    response_timestamps: list[_Nanoseconds]
    response_outputs: list[_Response]
    request_inputs: _Inputs = msgspec.field(default_factory=_Inputs)


class _Level(msgspec.Struct):
    mode: str
    value: float | str | None = None


class _Experiment(msgspec.Struct):
    experiment: _Level
    requests: list[msgspec.Raw]


class _File(msgspec.Struct):
    service_kind: str
    experiments: list[_Experiment]


class _Analyzer(msgspec.Struct):
    stimulus: dict[str, object] = {}


class _Settings(msgspec.Struct):
    perf_analyzer: _Analyzer
    model_names: list[str] = []


class _Summary(msgspec.Struct):
    request_count: aiperf.Figure
    input_config: _Settings
    time_to_first_token: aiperf.Figure | None = None
    inter_token_latency: aiperf.Figure | None = None
    request_latency: aiperf.Figure | None = None
    request_throughput: aiperf.Figure | None = None
    output_token_throughput: aiperf.Figure | None = None


def _read(document: Document) -> Iterator[Taken]:
    """Several experiments are several loads."""
    file, where = document.read_as(_File, TOOL), document.where
    if file.service_kind != _READ:
        what = f"requests to a service of kind '{file.service_kind}', which are not read"
        raise wrong(what, where, hint=f"{_READ} is")
    about = None
    if len(file.experiments) == 1:
        about = next_to(document.path, _summary_name(document.path), _Summary, TOOL)
    for experiment in file.experiments:
        yield _experiment(document, experiment, about)


def _summary_name(path: Path) -> str:
    return f"{path.stem}_genai_perf.json"


def _experiment(document: Document, experiment: _Experiment, about: _Summary | None) -> Taken:
    where, model = document.where, None
    rows, ttfts_ms, counts = Rows(where), [], True
    for index, raw in enumerate(experiment.requests):
        request = document.part(raw).read_as(_Request, TOOL)
        answer, content_s = _answer(document, request, f"{where}: request {index}")
        rows.add(answer)
        model = model or _model(request.request_inputs.payload)
        if answer.outcome is Outcome.OK:
            counts = counts and answer.output_tokens is not None
        if content_s is not None:
            ttfts_ms.append(1e3 * content_s)
    if not len(rows):
        raise wrong("holds no request", where)
    rows.check_streamed()
    if about is not None and about.time_to_first_token is not None:
        name = _summary_name(document.path)
        agree(f"request_count (in {name})", about.request_count.avg, len(ttfts_ms), where)
        agree(f"time_to_first_token (in {name})", about.time_to_first_token.avg, mean(ttfts_ms), where)
    load = _load(experiment.experiment.mode, experiment.experiment.value)
    lacks = [VERSION, INTENDED, TEXTS, *_of_load(load)]
    if not counts:
        lacks.append(_NO_COUNT)
    return Taken(
        tool=TOOL,
        version=None,
        level="records",
        took=f"{counted(len(rows), 'request')}: start, arrival of each text, end",
        load=load,
        records=rows.records(load.slots),
        model=model,
        started_unix_ns=rows.began_unix_ns,
        facts=("answers", "outcomes", "times", "arrivals", *(("tokens",) if counts else ())),
        lacks=tuple(lacks),
    )


def _answer(document: Document, request: _Request, where: str) -> tuple[Answer, float | None]:
    """The answer, and the seconds to its first content, which ends the tool's own TTFT."""
    stamps, sent = request.response_timestamps, request.timestamp / 1e9
    if len(stamps) != len(request.response_outputs):
        raise wrong(f"{len(stamps)} times of {len(request.response_outputs)} responses", where)
    if any(later < earlier for earlier, later in pairwise(stamps)):
        raise wrong("response_timestamps run backwards", where)
    usage, failed, content_s = Usage(), False, None
    chunks: list[float] = []
    for index, event in _events(document, request.response_outputs):
        usage, failed = event.usage or usage, failed or bool(memoryview(event.error).nbytes)
        if any(choice.has_text for choice in event.choices):
            chunks.append(stamps[index] / 1e9)
        if content_s is None and any(choice.has_content for choice in event.choices):
            content_s = (stamps[index] - request.timestamp) / 1e9
    end = stamps[-1] / 1e9 if stamps else None
    if failed or not chunks:
        outcome = Outcome.STREAM_ERROR if failed else Outcome.EMPTY
        return Answer(sent_s=sent, end_s=end, outcome=outcome), content_s
    details = usage.prompt_tokens_details
    answer = Answer(
        sent_s=sent,
        end_s=end,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=details.cached_tokens if details else None,
        output_tokens=usage.completion_tokens,
    )
    return answer.of_chunks(chunks), content_s


def _events(document: Document, responses: list[_Response]) -> Iterator[tuple[int, _Event]]:
    """Each event of a stream, with the index of the response in which its last byte came."""
    rest, last = "", len(responses) - 1
    for index, response in enumerate(responses):
        text = rest + response.response.replace("\r\n", "\n") + ("\n\n" if index == last else "")
        *events, rest = text.split("\n\n")
        for event in events:
            lines = [line.removeprefix("data:").strip() for line in event.split("\n") if line[:5] == "data:"]
            data = "\n".join(lines)
            if data and data != "[DONE]":
                yield index, document.part(msgspec.Raw(data.encode())).read_as(_Event, TOOL)


def _model(payload: str) -> str | None:
    try:
        return name_of(msgspec.json.decode(payload, type=dict[str, object]).get("model"))
    except (msgspec.DecodeError, RecursionError):
        return None


def _load(mode: str, value: object) -> Load:
    amount = plain(value)
    if mode == "concurrency" and amount:
        return serving.load(None, int(amount))
    if mode == "request_rate" and amount:
        return Load(kind="rate", value=amount, arrival="constant")
    return UNKNOWN_LOAD


def _of_load(load: Load) -> tuple[str, ...]:
    """What the file does not say of the load."""
    return {"unknown": (LOAD,), "rate": (_CONSTANT,)}.get(load.kind, ())


def _read_summary(document: Document) -> Iterator[Taken]:
    about, where = document.read_as(_Summary, TOOL), document.where
    reported = aiperf.figures(about, where)
    if "ttft_ms.mean" not in reported:
        raise wrong("has no time to a first token", where, hint="measure with --streaming")
    settings = about.input_config
    loads = [_load(mode, value) for mode, value in settings.perf_analyzer.stimulus.items()]
    load = loads[0] if len(loads) == 1 else UNKNOWN_LOAD
    yield Taken(
        tool=TOOL,
        version=None,
        level="summary",
        load=load,
        model=settings.model_names[0] if settings.model_names else None,
        lacks=(VERSION, "requests (profile_export.json has them)", *_of_load(load)),
        definitions=of_reported(_MEANT, TOOL, reported),
        reported=reported,
        answered=int(finite(about.request_count.avg, "request_count", where)),
        failed=0,
    )


READER = Reader(
    tool=TOOL,
    forms=(
        Form(_KEYS, _read),
        Form(_SUMMARY_KEYS, _read_summary),
    ),
    rows=(
        "GenAI-Perf | `profile_export.json` | | records | 0.0.16, Perf Analyzer 2.60.0",
        "GenAI-Perf | `profile_export_genai_perf.json` | | summary | 0.0.16",
    ),
    alone=True,
)
