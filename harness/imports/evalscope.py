"""`evalscope perf`: benchmark_data.db, a row for each request, or benchmark_summary.json of figures alone."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np

from harness.imports import serving
from harness.imports.reader import Form, Reader, refused
from harness.imports.source import Document, finite, next_to, wrong
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
    after_gaps,
    agree,
    mean,
    of_reported,
)
from harness.metrics.peers import ANSWERS, LEAVES_OUT, TEXT_SINCE_SEND, WHOLE_RUN
from harness.model import PERCENTILES, Load
from harness.model.numbers import counted
from harness.records.layout import Outcome

TOOL = "evalscope perf"
_SQLITE = b"SQLite format 3\0"
_TABLE = "result"
_SUMMARY_KEYS = {"Avg Latency (s)", "Success Requests", "Test Duration (s)"}
_PERCENTILE_KEYS = {"Percentiles", "Latency (s)"}  # of an entry
DATABASE = "benchmark_data.db"
SUMMARY = "benchmark_summary.json"
_SETTINGS = "benchmark_args.json"
_PERCENTILES = "benchmark_percentile.json"
_LONGEST = 64 << 20  # bytes of one value: the gaps of an answer are far shorter
_MEANT = {
    "ttft_ms": f"{TEXT_SINCE_SEND}; {LEAVES_OUT}",
    "itl_ms": f"gaps of text chunks; {LEAVES_OUT}",
    "tpot_ms": "from the first text to the last event of the stream, usage included, over (tokens − 1)",
    "e2e_ms": "actual send to the last event of the stream, usage included",
    "output_tokens_per_s": f"tokens {WHOLE_RUN}",
    "requests_per_s": ANSWERS,
}


class _Request(msgspec.Struct, array_like=True):
    """A row: of texts only the gaps, which are JSON."""

    start_time: float
    inter_token_latencies: str
    success: int
    completed_time: float | None
    latency: float | None
    first_chunk_latency: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    is_stream: int | None


_SELECT = f"SELECT {', '.join(_Request.__struct_fields__)} FROM {_TABLE}"


class _Settings(msgspec.Struct):
    model: str | None = None
    tokenizer_path: str | None = None


class _Summary(msgspec.Struct):
    answered: int = msgspec.field(name="Success Requests")
    failed: int = msgspec.field(name="Failed Requests", default=0)
    streamed: int | None = msgspec.field(name="Stream Requests", default=None)
    slots: float | None = msgspec.field(name="Concurrency", default=None)  # −1: no limit
    rate: float | None = msgspec.field(name="Request Rate (req/s)", default=None)  # −1: none
    ttft_ms: float | None = msgspec.field(name="Avg TTFT (ms)", default=None)
    itl_ms: float | None = msgspec.field(name="Avg ITL (ms)", default=None)
    tpot_ms: float | None = msgspec.field(name="Avg TPOT (ms)", default=None)
    e2e_s: float | None = msgspec.field(name="Avg Latency (s)", default=None)
    requests_per_s: float | None = msgspec.field(name="Req Throughput (req/s)", default=None)
    output_tokens_per_s: float | None = msgspec.field(name="Output Throughput (tok/s)", default=None)
    tokens_per_s: float | None = msgspec.field(name="Total Throughput (tok/s)", default=None)

    @property
    def load(self) -> Load:
        """The load; a rate has Poisson arrivals."""
        return serving.load(_set(self.rate), self.cap)

    @property
    def cap(self) -> int | None:
        return int(most) if (most := _set(self.slots)) else None


class _Percentile(msgspec.Struct):
    percentile: str = msgspec.field(name="Percentiles", default="")
    ttft_ms: float | None = msgspec.field(name="TTFT (ms)", default=None)
    itl_ms: float | None = msgspec.field(name="ITL (ms)", default=None)
    tpot_ms: float | None = msgspec.field(name="TPOT (ms)", default=None)
    e2e_s: float | None = msgspec.field(name="Latency (s)", default=None)


def _read(document: Document) -> Iterator[Taken]:
    where = document.where
    rows = Rows(where)
    for index, request in enumerate(_requests(document.path)):
        rows.add(_answer(request, f"{where}: row {index + 1}"))
    if not len(rows):
        raise wrong("holds no request", where)
    rows.check_streamed()
    about = next_to(document.path, SUMMARY, _Summary, TOOL)
    if about is not None:
        well = rows.ended_well
        firsts_ms = np.nan_to_num(1e3 * (well["first_s"] - well["sent_s"]))  # 0 of an answer without text
        agree(f"Success Requests (in {SUMMARY})", about.answered, len(well), where)
        agree(f"Avg TTFT (in {SUMMARY})", about.ttft_ms, mean(firsts_ms.tolist()), where)
        agree(
            f"Avg Latency (in {SUMMARY})", about.e2e_s, mean((well["end_s"] - well["sent_s"]).tolist()), where
        )
    settings = next_to(document.path, _SETTINGS, _Settings, TOOL) or _Settings()
    load = about.load if about else UNKNOWN_LOAD
    lacks = [VERSION, INTENDED, TEXTS]
    if load == UNKNOWN_LOAD:
        lacks.append(f"{LOAD} ({SUMMARY} has it)")
    if settings.tokenizer_path:
        lacks.append(f"{TOKENS}, where the server sent no usage")
    yield Taken(
        tool=TOOL,
        version=None,
        level="records",
        took=f"{counted(len(rows), 'request')}: start, first text, gaps, end, tokens",
        load=load,
        cap=about.cap if about else None,
        records=rows.records(load.slots),
        model=settings.model,
        facts=("answers", "outcomes", "tokens", "times", "arrivals"),
        lacks=tuple(lacks),
    )


def _requests(path: Path) -> Iterator[_Request]:
    """The rows, one by one, as the file has them: no journal is rolled back, and nothing is written.

    The schema of a foreign file is foreign too, so only columns of the one table may be read: no view that
    never ends, no function. Answers are pickled there and stay closed. Raises SpecError.
    """
    journal = path.with_name(f"{path.name}-journal")
    if journal.is_file() and journal.stat().st_size:
        raise wrong(f"was not closed: {journal.name} lies next to it", str(path))
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
            database.execute("PRAGMA trusted_schema = OFF")
            database.set_authorizer(_allowed)
            for row in database.execute(_SELECT):
                yield msgspec.convert(row, _Request)
    except (sqlite3.Error, msgspec.ValidationError, UnicodeDecodeError, OverflowError) as error:
        raise wrong(f"is not what {TOOL} writes: {error}".replace("`", "'"), str(path)) from None


def _allowed(action: int, table: str | None, *_: str | None) -> int:
    reads = action == sqlite3.SQLITE_SELECT or (action == sqlite3.SQLITE_READ and table == _TABLE)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _answer(request: _Request, where: str) -> Answer:
    sent, end = request.start_time, request.completed_time
    if not request.success:
        return Answer(sent_s=sent, end_s=end, outcome=Outcome.HTTP_ERROR)
    if not request.is_stream or not request.first_chunk_latency:
        return Answer(sent_s=sent, end_s=end, outcome=Outcome.EMPTY)
    try:
        gaps_s = msgspec.json.decode(request.inter_token_latencies, type=list[float])
    except msgspec.DecodeError as error:
        raise wrong(f"inter_token_latencies: {error}".replace("`", "'"), where) from None
    chunks = after_gaps(sent + request.first_chunk_latency, gaps_s)
    answer = Answer(
        sent_s=sent,
        end_s=max(sent + finite(request.latency, "latency", where), chunks[-1]),
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.completion_tokens,
    )
    return answer.of_chunks(chunks)


def _set(value: float | None) -> float | None:
    """The value; None for −1 and 0, which stand for none."""
    return value if value is not None and value not in (-1, 0) else None


def _read_summary(document: Document) -> Iterator[Taken]:
    about, where = document.read_as(_Summary, TOOL), document.where
    if about.streamed == 0 or not _set(about.ttft_ms):
        raise wrong("no answer was streamed", where, hint="measure with --stream")
    statistics: list[tuple[str, _Summary | _Percentile]] = [("mean", about), *_percentiles(document)]
    reported: dict[str, float] = {}
    for statistic, figures in statistics:
        for metric in ("ttft_ms", "itl_ms", "tpot_ms"):
            if (value := _set(getattr(figures, metric))) is not None:
                reported[f"{metric}.{statistic}"] = finite(value, metric, where)
        if (whole := _set(figures.e2e_s)) is not None:
            reported[f"e2e_ms.{statistic}"] = finite(1e3 * whole, "latency", where)
    for metric in ("requests_per_s", "output_tokens_per_s"):
        if (rate := _set(getattr(about, metric))) is not None:
            reported[metric] = finite(rate, metric, where)
    if about.tokens_per_s is not None and "output_tokens_per_s" in reported:
        rest = about.tokens_per_s - reported["output_tokens_per_s"]
        reported["input_tokens_per_s"] = finite(rest, "Total Throughput", where)
    settings = next_to(document.path, _SETTINGS, _Settings, TOOL) or _Settings()
    lacks = [VERSION, f"requests ({DATABASE} has them)"]
    if len(statistics) == 1:
        lacks.append(f"percentiles ({_PERCENTILES} has them)")
    if about.load == UNKNOWN_LOAD:
        lacks.append(LOAD)
    yield Taken(
        tool=TOOL,
        version=None,
        level="summary",
        load=about.load,
        cap=about.cap,
        model=settings.model,
        lacks=tuple(lacks),
        definitions=of_reported(_MEANT, TOOL, reported),
        reported=reported,
        answered=about.answered,
        failed=about.failed,
    )


def _percentiles(document: Document) -> Iterator[tuple[str, _Percentile]]:
    """The percentiles of the file next to it: samples, by nearest rank."""
    for row in next_to(document.path, _PERCENTILES, list[_Percentile], TOOL) or []:
        name = f"p{row.percentile.rstrip('%')}"
        if name in PERCENTILES:
            yield name, row


READER = Reader(
    tool=TOOL,
    forms=(
        Form(frozenset(), _read, begins=(_SQLITE,), whole=True),
        Form(_SUMMARY_KEYS, _read_summary),
        Form(
            _PERCENTILE_KEYS,
            refused(
                f"has the percentiles of {TOOL} alone", f"import {SUMMARY} next to it, which takes them in"
            ),
        ),
    ),
    rows=(
        "evalscope perf | `benchmark_data.db` | | records | 1.14.1",
        "evalscope perf | `benchmark_summary.json`, with `benchmark_percentile.json` next to it | | "
        "summary | 1.14.1",
    ),
    alone=True,
)
