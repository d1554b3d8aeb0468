"""`vllm bench serve --save-result`, with `--save-detailed` or without; `vllm-rs bench serve` likewise."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from harness.errors import SpecError
from harness.imports import serving
from harness.imports.reader import Files, Form, Reader
from harness.imports.source import Document, plain, wrong
from harness.imports.taken import (
    INTENDED,
    LOAD,
    TEXTS,
    UNKNOWN_LOAD,
    VERSION,
    ZONE,
    Answer,
    Rows,
    Taken,
    after_gaps,
    agree,
    mean,
)
from harness.metrics.peers import tool_named
from harness.model import Load
from harness.model.numbers import counted
from harness.records.layout import Outcome

TOOL = "vllm bench serve"
RUST = "vllm-rs bench serve"  # its other client, in the same package
NAMES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_ms": "e2el"}
_KEYS = {"endpoint_type", "model_id", "num_prompts", "request_throughput"}
_TURN_KEYS = {
    "num_conversations",
    "multi_turn_concurrency",
    "request_throughput",
}  # of --multi-turn
# Up to 0.32 the first chunk with a choice counts as the first token, with text or without; from 0.33 on the
# first text. Of the file's keys only times that the server itself reported tell the two apart. For the client
# in Rust such a chunk counts in 0.33 too.
_FIRST_CHUNK = "to the first chunk, which up to 0.32 may hold no text (the file names no version)"
_FIRST_CHUNK_OF_RUST = "to the first chunk, which may hold no text"
_VERSION = f"{VERSION} (from 0.33 on TTFT ends at text: older and newer files look alike)"
_REPLAY = "as in a replay of a trace, whose pace the file does not have"
_CHATS = f"{LOAD}: chats that wait between turns hold no slot meanwhile"
ANY_CHUNK, TEXT_ONLY = "vllm", "vllm@0.33"
_WARM_UP = "warmup.json"  # as `vllm bench sweep serve` names it
_OF_SWEEP = re.compile(r"SERVE--(.+?)(?:-BENCH--.*)?")
_NEAR = 0.01  # of TTFT: a chunk without text that is followed so soon changes nothing


class _File(serving.Arrays):
    model_id: str = ""
    date: str = ""
    latencies: tuple[serving.Number, ...] = ()
    start_times: tuple[serving.Number, ...] = ()
    num_prompts: int = 0  # as asked for: a small dataset has fewer
    failed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    mean_ttft_ms: float | None = None
    mean_itl_ms: float | None = None
    server_ttfts: msgspec.Raw = msgspec.Raw()  # from 0.33 on, where the server reports its own times
    ramp_up_strategy: str | None = None
    max_concurrent_requests: Annotated[int, msgspec.Meta(ge=0)] | None = None  # that met in a second
    input_throughput: float | None = None  # the client in Rust alone writes it
    multi_turn_concurrency: Annotated[int, msgspec.Meta(ge=1)] | None = None
    inter_turn_delay_ms: serving.Number = 0

    @property
    def tool(self) -> str:
        return TOOL if self.input_throughput is None else RUST

    @property
    def failures(self) -> int:
        """Failed requests; in a file that does not count them, the prompts that were not completed."""
        return max(self.num_prompts - self.completed, 0) if self.failed is None else self.failed

    @property
    def cap(self) -> int | None:
        return self.multi_turn_concurrency or self.max_concurrency

    @property
    def load(self) -> Load:
        if self._no_load:
            return UNKNOWN_LOAD
        requests = self.completed + self.failures
        return serving.load(self.request_rate, self.cap, requests=requests, burstiness=self.burstiness)

    @property
    def _no_load(self) -> str:
        """Says why the load is not known; "" if it is.

        Requests that are all sent at once may miss one another by a few: 2,997 of 3,000 met with 0.33.0.
        """
        if self.inter_turn_delay_ms:
            return _CHATS
        met, most = self.max_concurrent_requests, min(self.cap or self.completed, self.completed)
        if plain(self.request_rate) or met is None or 2 * met >= most:
            return ""
        return f"{LOAD}: at most {counted(met, 'request')} met in a second, {_REPLAY}"

    def lacks(self, *more: str) -> tuple[str, ...]:
        """What no file of these clients has, as far as this one does not have it, and `more`."""
        version = _VERSION if self.tool == TOOL else VERSION
        zone = () if self.date.endswith("Z") else (ZONE,)
        return version, *zone, *filter(None, [self._no_load]), *more


def _read(document: Document) -> Iterator[Taken]:
    file = document.read_as(_File, TOOL)
    stated = serving.figures(document, TOOL, NAMES)
    if file.ramp_up_strategy is not None:
        hint = "a rate and a concurrency that stay the same are read"
        what = f"a ramp of rates ('{file.ramp_up_strategy}'), which is not read"
        raise wrong(what, document.where, hint=hint)
    serving.check_duration(file, stated, document.where)
    peer = _peer(document, file)
    if file.ttfts or file.start_times:
        yield _detailed(document, file, peer)
    else:
        yield _summary(document, file, stated, peer)


def _server(path: Path) -> dict[str, str]:
    """What `vllm bench sweep serve` started the server with: only the name of the folder says it."""
    found = _OF_SWEEP.fullmatch(path.absolute().parent.name)
    return {"serve": found[1]} if found else {}


def _peer(document: Document, file: _File) -> str | None:
    """The tool whose definitions the figures have; None if neither file nor user names the version."""
    given = document.tool_version
    if file.tool == RUST:
        return ANY_CHUNK
    if not memoryview(file.server_ttfts).nbytes:
        return _known(given) if given else None
    if given and _known(given) != TEXT_ONLY:
        raise wrong(f"has server_ttfts, which {TOOL} {given} does not write", document.where)
    return TEXT_ONLY


def _known(version: str) -> str:
    try:
        return tool_named(f"vllm@{version}").name
    except ValueError as error:
        raise SpecError(str(error), where="--tool-version") from None


def _summary(document: Document, file: _File, stated: dict[str, float], peer: str | None) -> Taken:
    if not stated:
        raise wrong("has neither requests nor figures", document.where)
    return Taken(
        tool=file.tool,
        version=None,
        level="summary",
        load=file.load,
        cap=file.cap,
        settings=_server(document.path),
        model=file.model_id or None,
        started_unix_ns=serving.began_unix_ns(file.date, file.duration),
        lacks=file.lacks("requests (run with --save-detailed)"),
        definitions=serving.definitions(peer or ANY_CHUNK, stated),
        reported=stated,
        answered=file.completed,
        failed=file.failures,
    )


def _empty(chunks: int, tokens: int | None, peer: str | None) -> tuple[int, int]:
    """The number of chunks without text at the beginning and at the end.

    One chunk more than tokens is a finish chunk, if a role chunk is not counted; two more are both.
    """
    more = chunks - tokens if tokens else 0
    if peer == TEXT_ONLY:
        return 0, int(more == 1)
    return (1, 1) if more == 2 else (0, 0)


def _detailed(document: Document, file: _File, peer: str | None) -> Taken:
    where = document.where
    names = ("input_lens", "output_lens", "ttfts", "start_times")
    rows, doubtful, moved = Rows(where), 0, 0
    ttfts_ms: list[float] = []
    total_gap, gap_count = 0.0, 0
    for index, gaps in enumerate(serving.gaps(file, names, where)):
        tokens, ttft = file.output_lens[index], float(file.ttfts[index])
        result, error = file.outcome(index)
        sent = float(file.start_times[index])
        if result is not Outcome.OK:
            took = float(file.latencies[index]) if index < len(file.latencies) else 0.0
            end = sent + took if took > 0 else None
            rows.add(Answer(sent_s=sent, end_s=end, outcome=result, error=error))
            continue
        ttfts_ms.append(ttft * 1e3)
        total_gap, gap_count = total_gap + sum(gaps), gap_count + len(gaps)
        chunks = after_gaps(sent + ttft, gaps)
        first, last = _empty(len(chunks), tokens, peer)
        moved += first
        doubtful += peer != TEXT_ONLY and not first and len(gaps) > 0 and gaps[0] > _NEAR * ttft
        answer = Answer(sent_s=sent, prompt_tokens=file.input_lens[index], output_tokens=tokens)
        rows.add(answer.of_chunks(chunks, first, last))
    agree("completed", file.completed, len(ttfts_ms), where)
    agree("mean_ttft_ms", file.mean_ttft_ms, mean(ttfts_ms), where)
    agree("mean_itl_ms", file.mean_itl_ms, 1e3 * total_gap / gap_count if gap_count else None, where)
    lacks = [*file.lacks(INTENDED, TEXTS)]
    if moved:
        extra = f"in {counted(moved, 'answer')} with two chunks more than tokens the first and last were"
        lacks.append(f"which chunks hold text: {extra} taken for empty ones, and TTFT was computed again")
    meaning = _FIRST_CHUNK if file.tool == TOOL else _FIRST_CHUNK_OF_RUST
    in_doubt = {"ttft_ms", "ttft_service_ms", "tpot_ms", "itl_ms"} if doubtful else set()
    return Taken(
        tool=file.tool,
        version=None,
        level="records",
        took=f"{counted(len(rows), 'request')}: send, first chunk, gaps, tokens",
        load=file.load,
        cap=file.cap,
        settings=_server(document.path),
        records=rows.records(file.load.slots),
        model=file.model_id or None,
        started_unix_ns=serving.began_unix_ns(file.date, file.duration),
        facts=("answers", "outcomes", "tokens", "times", "arrivals"),
        lacks=tuple(lacks),
        definitions=dict.fromkeys(sorted(in_doubt), f"{file.tool}: {meaning}"),
    )


def _chosen(files: Files) -> Iterable[Path]:
    """Leaves out of a sweep its warm-up, and the list of all its runs."""
    runs = [path for path in files if path.name != _WARM_UP]
    return [path for path in runs if not files[path].is_list] or runs


READER = Reader(
    tool=TOOL,
    forms=(
        Form(_KEYS, _read),
        Form(_TURN_KEYS, _read),
    ),
    rows=(
        "vllm bench serve | JSON | `--save-result --save-detailed` | records | 0.32.0, 0.33.0",
        "vllm bench serve | JSON | `--save-result` | summary | 0.32.0, 0.33.0",
        "vllm-rs bench serve | JSON | `--save-result --save-detailed` | records | 0.33.0",
        "vllm-rs bench serve | JSON | `--save-result`, with `--multi-turn` too | summary | 0.33.0",
    ),
    chosen=_chosen,
)
