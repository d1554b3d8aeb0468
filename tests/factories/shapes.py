"""What a server, a file or a run folder of another origin may say: shapes drawn for every field.

`SUBJECTS` names every parser of foreign data with the cases that it is given. `judge` runs one case: the
parser takes it, or refuses it with an error of the project whose text is one inert line.
"""

import gzip
import io
import json
import math
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st

from harness.apis.chat import CHAT
from harness.cli.main import main
from harness.client.answer import Answer
from harness.doctor import result as doctor
from harness.engines.provide.models import local_model
from harness.engines.speak.prometheus import gauge_paths, histogram, read_series
from harness.engines.speak.server import Server
from harness.errors import BenchError
from harness.host import paths
from harness.host.access import Access
from harness.model import HostFacts, Manifest, WorkloadCard, as_json
from harness.nightly.suite import load_suite
from harness.probe.exchange import _read
from harness.records.layout import UNKNOWN
from harness.run.setup import noise
from harness.run.setup.options import RunOptions, stored_options
from harness.sampling.watcher import read_spill
from harness.spec import files
from harness.spec.backend_refs import load_backend, parse_backend
from harness.spec.prices import load_prices
from harness.spec.scenario import load_scenario, parse_scenario, with_profile
from harness.spec.schemas import read_schemas
from harness.spec.tuned import Provenance, load_tuned
from harness.store import RunFolder, seal
from harness.store.history import read_history
from harness.summary import summarise_folder
from harness.untrusted import BadDocumentError, Secrets, inert, read_document
from harness.workload.traces import clip, read_dataset, read_trace, window
from tests.factories import documents
from tests.factories.answers import CHUNKED, chunked, delta, event, head, play
from tests.factories.answers import field as field_of
from tests.factories.runs import SMALL, make_run

Verdict = Literal["accepted", "refused"]
KEY = "sk-Very/Secret+0123"

# -- values ------------------------------------------------------------------------------------------

ODD = ["\ud800", "\x1b[31m", "\u202e", "\x00", "a\nb\r\nhint: c", "\x9b2J", "é😀", KEY, "", "x" * 5000, "NaN"]
TEXTS = st.sampled_from(ODD) | st.text(max_size=20)
NUMBERS = (
    st.sampled_from(
        [0, -1, 1, 2**31, 2**63, -(2**64), 10**30, 10**400, 1e30, 1e308, -0.0, 0.5, math.inf, -math.inf]
    )
    | st.sampled_from([math.nan, True])
    | st.integers()
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
_WHOLE_TEXTS = TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())
DEEP = [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 90 + b"]" * 90, b'{"a":' * 500 + b"1" + b"}" * 500]
RAW = st.binary(max_size=60) | st.sampled_from(
    [
        b"",
        b"\xef\xbb\xbf",
        b"\x00",
        b"null",
        b"NaN",
        b"9" * 5000,
        b"1e999",
        b'"\\ud800"',
        b"\xff\xfe[\x00",
        *DEEP,
    ]
)


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


@st.composite
def changed(draw: st.DrawFn, document: Any, values: st.SearchStrategy[Any]) -> Any:
    """`document` with one to three of its values replaced, left out, or joined by one more."""
    made = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        place, key = made, None
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 4)) == 0:
                break
            place = place[key]
        if key is None:
            return draw(values)
        how = draw(st.integers(0, 5))
        if how == 0:
            del place[key]
        elif how == 1 and isinstance(place, dict):
            place[draw(_WHOLE_TEXTS)] = draw(values)
        else:
            place[key] = draw(values)
    return made


@st.composite
def written(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> bytes:
    """As a file or a body: mostly whole; else cut, with a byte order mark, in UTF-16, or any bytes."""
    how = draw(st.integers(0, 9))
    if how == 0:
        return draw(RAW)
    data = as_bytes(draw(documents))
    if how == 1:
        return data[: draw(st.integers(0, len(data)))]
    if how == 2:
        return b"\xef\xbb\xbf" + data
    if how == 3:
        return data.decode().encode("utf-16")
    return data


def lines(documents: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return st.lists(written(documents), max_size=4).map(b"\n".join)


# -- what a server says ------------------------------------------------------------------------------

_DELTAS = ("content", "reasoning", "reasoning_content", "tool_calls", "role", "text")
_CALL = st.fixed_dictionaries({}, optional={"index": VALUES, "id": VALUES, "function": VALUES})
_DELTA = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(_DELTAS, VALUES) | {"tool_calls": st.lists(_CALL, max_size=2)}
)
_CHOICE = st.fixed_dictionaries(
    {}, optional={"delta": _DELTA | VALUES, "finish_reason": VALUES, "message": _DELTA | VALUES}
)
_USAGE = st.fixed_dictionaries(
    {}, optional={"prompt_tokens": SCALARS, "completion_tokens": SCALARS, "prompt_tokens_details": VALUES}
)
CHUNK = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("timings", "error", "object", "id"), VALUES)
    | {"choices": st.lists(_CHOICE | VALUES, max_size=2) | VALUES, "usage": _USAGE | VALUES},
)
_ENTRY = st.fixed_dictionaries({}, optional={"id": VALUES, "message": VALUES, "delta": VALUES})
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "data": st.lists(_ENTRY | VALUES, max_size=2) | VALUES,
        "version": VALUES,
        "choices": st.lists(_ENTRY | VALUES, max_size=2) | VALUES,
        "error": VALUES,
    },
)
STATUSES = st.sampled_from([200, 200, 200, 204, 302, 400, 401, 404, 500, 999])
_GOOD = {
    "data": [{"id": "m", "object": "model"}],
    "version": "1.2",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}],
}
SAID = st.tuples(STATUSES, written(changed(_GOOD, VALUES) | SHAPED | VALUES))

_SAMPLE = st.sampled_from(["1", "0", "-1", "NaN", "+Inf", "1e400", "down", "1_0", "", "\x1b", "9" * 400])
_LABELS = st.sampled_from(["", '{a="b"}', '{le="1"}', '{le="+Inf"}', '{le="x"}', "{", "}", '{le=""}'])
_NAME = st.sampled_from(["x", "x_bucket", "x_sum", "x_count", "y"])
METRICS = st.lists(st.tuples(_NAME, _LABELS, _SAMPLE), max_size=8).map(
    lambda rows: "".join(f"{name}{labels} {value}\n" for name, labels, value in rows)
)


class Said:
    """In the place of the client: the same answer to everything."""

    def __init__(self, status: int, body: bytes) -> None:
        self.answer = Answer("http://h:1/x", status, {}, body, (), Secrets([KEY]))

    def ask(self, *_asked: Any, **_options: Any) -> Answer:
        return self.answer


_TABLE = {
    "backend": {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"},
    "server": {
        "ready_path": "/health",
        "startup_timeout_s": 5,
        "version": {"path": "/version", "key": "version"},
        "info": [{"path": "/info", "keys": ["data", "version.x"]}],
        "tokenize": {"path": "/tokenize", "text_field": "prompt", "tokens_key": "data"},
    },
    "prefix_cache": {"enabled": True, "reset": {"path": "/reset", "success_key": "version"}},
    "metrics": {"path": "/metrics", "counters": {"prompt_tokens": "x"}, "histograms": {"ttft": "x"}},
}


@cache
def _server() -> Server:
    return Server(parse_backend(_TABLE, "x.toml"), "http://h:1", "m", Access(credentials=(KEY,)))


def server_that_says(status: int, body: bytes) -> Server:
    server = _server()
    server._client = Said(status, body)  # type: ignore[assignment]  # asked like one
    return server


QUESTIONS: dict[str, Callable[[Server], Any]] = {
    "models list": lambda server: server.model_names(),
    "chat answer": lambda server: server.one_chat([], 4),
    "answer of an API": lambda server: server.refusal_of("responses"),
    "version": lambda server: server.version(),
    "info": lambda server: server.info(),
    "tokenize": lambda server: server.count_tokens(["a"]),
    "cache reset": lambda server: server.reset_prefix_cache().how,
    "health": lambda server: server.check_reachable(),
}


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in texts_in(one)]
    return [text for one in value for text in texts_in(one)] if isinstance(value, list) else []


def holds_harm(text: str) -> bool:
    return inert(text) != text or KEY.lower() in text.lower()


def _asked(question: Callable[[Server], Any], said: tuple[int, bytes]) -> None:
    found = question(server_that_says(*said))
    json.dumps(found, allow_nan=False)
    assert not any(map(holds_harm, texts_in(found)))


def _metrics(text: str) -> None:
    assert all(0 <= value < math.inf for value in read_series(text, {"a": "x"}, {"kv_use": "y"}).values())
    shape = histogram(text, "x")
    assert all(value is None or math.isfinite(value) for value in (shape["sum"], shape["count"]))


def _gauges(data: bytes) -> None:
    found = gauge_paths(read_document(data), {"running": "data / version", "waiting": "version.x"})
    assert all(map(math.isfinite, found.values()))


def _streamed(bodies: list[bytes]) -> None:
    body = b"".join(map(event, [delta("a"), *bodies]))
    _as_record(body, [head(CHUNKED), chunked([body])], streamed=True)


def _document(body: bytes) -> None:
    _as_record(body, [head(f"content-length: {len(body)}", content_type="application/json") + body])


def _as_record(body: bytes, reads: list[bytes], *, streamed: bool = False) -> None:
    settled = play(reads)
    settled.text.encode()
    json.loads(settled.tool_calls or "[]")
    assert len(settled.finish_reason) <= 64
    for name in ("prompt_tokens", "cached_tokens", "output_tokens"):
        assert field_of(settled, name) == UNKNOWN or 0 <= field_of(settled, name) <= 10_000_000
    for text in (settled.error, settled.finish_reason):
        assert "\n" not in text
        assert inert(text) == text
    headers = {"content-type": "text/event-stream" if streamed else "application/json"}
    pieces = ((0.0, len(body)),)
    _read(Answer("http://a", 200, headers, body, pieces, Secrets([KEY])), pieces, CHAT)


# -- what files say ----------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
_DATES = st.sampled_from(
    ["2023-11-16 18:17:03.9799600", "9999-12-31T23:59:59+14:00", "0001-01-01", "now", ""]
)


def _row(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional={name: VALUES | one for name, one in fields.items()}) | VALUES


_COUNT, _BLOCKS = st.integers(0, 2000), st.lists(st.integers() | VALUES, max_size=3)
_MOONCAKE = _row(timestamp=_COUNT, input_length=_COUNT, output_length=_COUNT, hash_ids=_BLOCKS)
_PLAIN = _row(at_s=_COUNT, input_tokens=_COUNT, output_tokens=_COUNT, blocks=_BLOCKS)
_ENTRY = _row(
    t=_COUNT,
    type=st.sampled_from(["s", "n", "subagent"]),
    out=_COUNT,
    hash_ids=_BLOCKS,
    api_time=_COUNT,
    think_time=_COUNT,
    requests=st.lists(_row(t=_COUNT, out=_COUNT), max_size=2),
    **{"in": _COUNT},
)
_WEKA = _row(block_size=_COUNT, requests=st.lists(_ENTRY, max_size=4), hash_id_scope=TEXTS)
_EVENT = _row(event_type=st.sampled_from(["text", "tool_result", "user_message"]), timestamp=_DATES)
_ROUND = _row(
    session_id=TEXTS,
    input_tokens_total=_COUNT,
    prefix_tokens=_COUNT,
    output_tokens=_COUNT,
    timing_events=st.lists(_EVENT, max_size=3),
)
_USAGE = _row(
    **{
        "gen_ai.operation.name": st.sampled_from(["chat", "execute_tool"]),
        "gen_ai.usage.input_tokens": _COUNT,
        "gen_ai.usage.output_tokens": _COUNT,
        "gen_ai.usage.cache_read.input_tokens": _COUNT,
    }
)
_SPAN = _row(
    traceId=st.just("t"),
    spanId=st.sampled_from("abc"),
    parentSpanId=st.sampled_from("abc"),
    startTimeUnixNano=_COUNT,
    endTimeUnixNano=_COUNT,
    attributes=_USAGE,
)
_SPANS = _row(spans=st.lists(_SPAN, max_size=4)) | _row(
    resourceSpans=st.lists(_row(scopeSpans=st.lists(_row(spans=st.lists(_SPAN, max_size=2)))), max_size=2)
)
_FULL = {
    "mooncake": {"timestamp": 0, "input_length": 4, "output_length": 4, "hash_ids": [1]},
    "jsonl": {"at_s": 0, "input_tokens": 4, "output_tokens": 4},
    "weka": {"block_size": 4, "requests": [{"t": 0, "in": 4, "out": 4, "hash_ids": [1]}]},
    "tracelab": {
        "session_id": "a",
        "input_tokens_total": 4,
        "prefix_tokens": 0,
        "output_tokens": 4,
        "timing_events": [{"event_type": "text", "timestamp": "2026-01-01"}],
    },
    "otel": {
        "traceId": "t",
        "spanId": "z",
        "startTimeUnixNano": 1,
        "endTimeUnixNano": 2,
        "attributes": {"gen_ai.usage.input_tokens": 4, "gen_ai.usage.output_tokens": 4},
    },
}


def _with_one(whole: Mapping[str, Any], rows: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Often behind a good line, so that reading goes on."""
    return st.tuples(st.sampled_from([b"", as_bytes(whole) + b"\n"]), rows).map(b"".join)


def _table(columns: str, good: str, first: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    cell = (first | SCALARS).map(str)
    rows = st.lists(st.lists(cell, max_size=4).map(",".join), max_size=4)
    return rows.map(lambda made: "\n".join([columns, good, *made]).encode("utf-8", "replace")) | RAW


_MESSAGE = _row(role=st.sampled_from(["user", "assistant", "system"]), content=TEXTS, value=TEXTS)
_ENTRY_OF_SET = _row(
    prompt=TEXTS,
    system=TEXTS,
    category=TEXTS,
    turns=st.lists(TEXTS, max_size=2),
    output_tokens=_COUNT,
    messages=st.lists(_MESSAGE, max_size=3),
    conversations=st.lists(_MESSAGE, max_size=3),
)


def _read_trace(path: Path, named: str = "auto") -> None:
    trace = read_trace(path, named)
    json.dumps(trace.facts(), allow_nan=False)
    assert not any(map(holds_harm, texts_in([*trace.skipped, *trace.remarks])))
    window(clip(trace, 100, 100), 0.0, None, 5)


def _read_dataset(path: Path) -> None:
    found = read_dataset(path)
    json.dumps(found.facts(), allow_nan=False)
    json.dumps([(prompt.messages, prompt.answer) for prompt in found.prompts], ensure_ascii=False).encode()


def _scenario(table: dict[str, Any]) -> None:
    files.fingerprint(parse_scenario(with_profile(table, "cpu", "x.toml"), "x.toml"))


def _backend(table: dict[str, Any]) -> None:
    files.fingerprint(parse_backend(table, "x.toml"))


def _tables(kind: paths.Kind) -> st.SearchStrategy[Any]:
    found = [
        files.read_toml(path) for name, path in sorted(paths.definitions(kind).items()) if name != "models"
    ]
    clean = VALUES.map(as_bytes).map(read_document)  # the door of files, before it
    made = st.sampled_from(found).flatmap(lambda table: changed(table, clean))
    return made.filter(lambda table: isinstance(table, dict))  # as every TOML document is


_BAD_TOML = st.sampled_from(
    ["a = nan\n", "=", 'a = "\\ud800"', "[a]\n[a]", "a = 1\x00", "[[a.b]]\n[a]", "\ufeff"]
)


def _toml(sample: Path) -> st.SearchStrategy[bytes]:
    """Its text, damaged."""
    text = sample.read_text(encoding="utf-8")

    def damaged(at: int, piece: str) -> bytes:
        return (text[:at] + piece + text[at + len(piece) :]).encode("utf-8", "replace")

    return st.builds(damaged, st.integers(0, len(text)), TEXTS | _BAD_TOML) | RAW


# -- a run folder of another origin --------------------------------------------------------------------

CELL = "cells/000-llamacpp-c2-r0"
DOCUMENTS = ("manifest.json", f"{CELL}/cell.json", "summary.json")


class Folders:
    """One run that is changed, read and put right again for every case."""

    def __init__(self, room: Path) -> None:
        self.room = room
        self.run = make_run(room, SMALL)
        self._kept = {name: (self.run.path / name).read_bytes() for name in DOCUMENTS}

    def document(self, name: str) -> Any:
        return json.loads(self._kept[name])

    def with_file(self, name: str, data: bytes) -> "_Replaced":
        for kept, whole in self._kept.items():  # a command may have written them
            (self.run.path / kept).write_bytes(whole)
        return _Replaced(self.run.path / name, data)


class _Replaced:
    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data = path, data

    def __enter__(self) -> None:
        self.before = self.path.read_bytes() if self.path.exists() else None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.data)

    def __exit__(self, *_: object) -> None:
        if self.before is None:
            self.path.unlink()
        else:
            self.path.write_bytes(self.before)


class RefusedError(BenchError):
    """Of a command: what it printed."""


def command(*arguments: str) -> None:
    """As a person calls it; RefusedError where it ends with an error."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        code = main(list(arguments))
    text = said.getvalue()
    assert inert(text) == text, text
    if text.startswith("error:"):
        raise RefusedError(text.splitlines()[0], where=str(code))


_ASKED = [{"expectations": []}, {"max_tokens": 4, "content_tokens": 3, "shared": [[1, 2]], "kind": "a"}]


def _read_asked(run: RunFolder) -> None:
    asked = documents.changed(run.read_cell(run.cells()[0])[1], workload={"file": "workloads/x.jsonl.gz"})
    found = run.read_requested(asked)
    assert found is not None
    list(found.as_json())


# -- every parser ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """`read` gets the room to write into and a case; what it returns does not matter."""

    name: str
    cases: Callable[[Folders], st.SearchStrategy[Any]]
    read: Callable[[Folders, Any], object]
    slow: bool = False  # a whole command for each case


def _from_file(name: str, read: Callable[[Path], object]) -> Callable[[Folders, bytes], object]:
    def run(folders: Folders, data: bytes) -> object:
        path = folders.room / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return read(path)

    return run


def _of_run(name: str, read: Callable[[RunFolder], object]) -> Callable[[Folders, bytes], object]:
    def run(folders: Folders, data: bytes) -> object:
        with folders.with_file(name, data):
            return read(folders.run)

    return run


def _of_doctor(folders: Folders, data: bytes) -> None:
    with _Replaced(doctor.path(), data):
        doctor.per_worker("concurrency", HostFacts(cpu="x"))


def _of_noise(folders: Folders, data: bytes) -> None:
    with _Replaced(noise.path(), data):
        noise.stored("k")


def _commands(*each: tuple[str, ...]) -> Callable[[RunFolder], None]:
    """All of them, whatever the first says."""

    def run(folder: RunFolder) -> None:
        refused = None
        for arguments in each:
            try:
                command(*(one.format(run=folder.path, results=folder.path.parent) for one in arguments))
            except RefusedError as error:
                refused = error
        if refused is not None:
            raise refused

    return run


READERS = _commands(
    ("list", "runs", "--out", "{results}"),
    ("report", "{run}"),
    ("compare", "{run}", "--json", "--force"),
    ("claims", "{run}"),
)


def _prices(_: Folders) -> st.SearchStrategy[bytes]:
    amount = st.sampled_from(["1", "nan", "inf", "-1", "1e400", "9" * 400, '"x"', "[]", "{}", "2026-01-01"])
    name = st.sampled_from(["machine_per_hour", "gpu_per_hour", "currency", "source", '"\\u202e"', "a"])
    given = st.lists(st.tuples(name, amount).map(" = ".join), max_size=3)
    return given.map(lambda rows: "\n".join(['currency = "USD"', 'source = "x"', *rows]).encode()) | RAW


def _tuned(_: Folders) -> st.SearchStrategy[bytes]:
    value = VALUES.map(lambda value: json.dumps(value))
    names = st.sampled_from(["backend", "values", "variant", "provenance.date_utc", "provenance.trials"])
    given = st.dictionaries(names, value, max_size=2)
    whole = {
        "backend": '"x"',
        "values": "{a = 1}",
        **{f"provenance.{name}": '""' for name in Provenance.__slots__},
        "provenance.budget_s": "1",
        "provenance.spent_s": "1.0",
        "provenance.trials": "1",
        "provenance.failed_trials": "0",
        "provenance.runs": "[]",
    }
    rows = given.map(lambda changes: [f"{name} = {text}" for name, text in (whole | changes).items()])
    return rows.map(lambda made: "\n".join(["[tuned]", *made]).encode()) | RAW


def _run_options(manifest: Any) -> None:
    options = manifest.get("options") if isinstance(manifest, dict) else None
    if isinstance(options, dict):  # its type is asked before
        stored_options(documents.made(Manifest, options=options), "manifest.json")


_OPTIONS = json.loads(json.dumps(asdict(RunOptions("s", "a,b")), default=str))
_FINDING = {"topic": "chat", "declared": "yes", "seen": "no", "holds": False, "then": "x", "matters": True}
_LENGTHS = {"min": 1, "p50": 2.0, "max": 3, "histogram": {"edges": [1, 2, 3], "counts": [4, 5]}}
_CARD = documents.made(
    WorkloadCard,
    {
        "load": {"kind": "concurrency", "value": 2, "start": "spread"},
        "requests": 4,
        "warmup_requests": 1,
        "input_tokens": _LENGTHS,
        "output_tokens": _LENGTHS,
        "sessions": {"count": 1, "turns_max": 2},
        "sharing": {"radix_hit_rate": 0.5, "block_tokens": 16},
    },
)
_SUMS = {"manifest.json": ["0" * 64], f"{CELL}/cell.json": ["0" * 64, "1" * 64]}
_HISTORY = {
    "schema": 1,
    "run": "r",
    "created_utc": "2026-01-01T00:00:00Z",
    "scenario": "s",
    "label": "x",
    "load": {"kind": "rate", "value": 1},
    "host": {"cpu": "x"},
    "workload_sha256": None,
    "engine_version": "1",
    "metrics": {"ttft_ms.p50": {"interval": [1.0, 2.0, 3.0], "runs": 3}},
}


def _sums(_: Folders) -> st.SearchStrategy[bytes]:
    """Half of them with the right sum over themselves: whoever sends a folder can make it."""

    def sealed(files: Any) -> dict[str, Any]:
        text = json.dumps(files, sort_keys=True)
        return {"schema": 1, "files": files, "sha256": seal.sha256_of(text.encode())}

    files = changed(_SUMS, VALUES)
    return files.map(sealed).map(as_bytes) | written(changed(sealed(_SUMS), VALUES))


def _of_document(name: str) -> "Callable[[Folders], st.SearchStrategy[bytes]]":
    return lambda folders: written(changed(folders.document(name), VALUES))


SUBJECTS = (
    Subject("JSON document", lambda _: written(VALUES), lambda _, data: read_document(data)),
    *(
        Subject(name, lambda _: SAID, lambda _, said, question=question: _asked(question, said))
        for name, question in QUESTIONS.items()
    ),
    Subject("metrics text", lambda _: METRICS | st.text(), lambda _, text: _metrics(text)),
    Subject("metrics JSON", lambda _: written(SHAPED | VALUES), lambda _, data: _gauges(data)),
    Subject("stream events", lambda _: st.lists(written(CHUNK), max_size=4), lambda _, d: _streamed(d)),
    Subject("answer document", lambda _: written(CHUNK | VALUES), lambda _, data: _document(data)),
    Subject(
        "Mooncake trace",
        lambda _: _with_one(_FULL["mooncake"], lines(_MOONCAKE)),
        _from_file("trace", _read_trace),
    ),
    Subject(
        "JSON lines trace",
        lambda _: _with_one(_FULL["jsonl"], lines(_PLAIN)),
        _from_file("trace", _read_trace),
    ),
    *(
        Subject(
            f"{name} sessions",
            lambda _, form=form, rows=rows: _with_one(_FULL[form], lines(rows)),
            _from_file("trace", _read_trace),
        )
        for name, form, rows in (
            ("Weka", "weka", _WEKA),
            ("TraceLab", "tracelab", _ROUND),
            ("OpenTelemetry", "otel", _SPANS),
        )
    ),
    Subject(
        "Azure trace",
        lambda _: _table("TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16,4,4", _DATES),
        _from_file("trace", lambda path: _read_trace(path, "azure")),
    ),
    Subject(
        "BurstGPT trace",
        lambda _: _table("Timestamp,Request tokens,Response tokens", "0,4,4", _COUNT),
        _from_file("trace", lambda path: _read_trace(path, "burstgpt")),
    ),
    Subject("prompt lines", lambda _: lines(_ENTRY_OF_SET), _from_file("prompts", _read_dataset)),
    Subject(
        "ShareGPT list",
        lambda _: written(st.lists(_ENTRY_OF_SET, max_size=3)),
        _from_file("prompts", _read_dataset),
    ),
    Subject("scenario table", lambda _: _tables("workloads"), lambda _, table: _scenario(table)),
    Subject("backend table", lambda _: _tables("backends"), lambda _, table: _backend(table)),
    Subject(
        "scenario TOML",
        lambda _: _toml(ROOT / "workloads" / "rag.toml"),
        _from_file("s.toml", lambda path: load_scenario(str(path))),
    ),
    Subject(
        "backend TOML",
        lambda _: _toml(ROOT / "backends" / "llamacpp.toml"),
        _from_file("b.toml", lambda path: load_backend(str(path))),
    ),
    Subject("prices TOML", _prices, _from_file("p.toml", load_prices)),
    Subject("tuned TOML", _tuned, _from_file("t.toml", load_tuned)),
    Subject(
        "suite TOML",
        lambda _: _toml(ROOT / "workloads" / "suites" / "cpu.toml"),
        _from_file("n.toml", lambda path: load_suite(str(path))),
    ),
    Subject(
        "JSON schemas",
        lambda _: written(VALUES),
        _from_file("schemas/a.json", lambda path: read_schemas(str(path.parent))),
    ),
    Subject(
        "model config",
        lambda _: written(_row(quantization_config=_row(quant_method=TEXTS, bits=_COUNT), dtype=TEXTS)),
        _from_file("weights/config.json", lambda path: local_model(str(path.parent))),
    ),
    Subject("manifest", _of_document(DOCUMENTS[0]), _of_run("manifest.json", RunFolder.read_manifest)),
    Subject(
        "run options",
        lambda _: written(st.builds(lambda options: {"options": options}, changed(_OPTIONS, VALUES))),
        lambda _, data: _run_options(read_document(data)),
    ),
    Subject(
        "cell facts",
        _of_document(DOCUMENTS[1]),
        _of_run(f"{CELL}/cell.json", lambda run: run.read_cell(Path(CELL).name)),
    ),
    Subject(
        "summary",
        _of_document(DOCUMENTS[2]),
        _of_run("summary.json", lambda run: json.dumps(as_json(run.read_summary()))),
    ),
    Subject(
        "workload lines",
        lambda _: (
            lines(changed(_ASKED[1], VALUES)).map(
                lambda data: gzip.compress(as_bytes(_ASKED[0]) + b"\n" + data, 1, mtime=0)
            )
            | RAW
        ),
        _of_run("workloads/x.jsonl.gz", _read_asked),
    ),
    Subject("checksums", _sums, _of_run(seal.FILE, lambda run: seal.faults(run.files))),
    Subject("history lines", lambda _: lines(changed(_HISTORY, VALUES)), _from_file("h.jsonl", read_history)),
    Subject(
        "doctor's result",
        lambda _: written(changed({"schema": 1, "host": {}, "verdict": {}}, VALUES)),
        _of_doctor,
    ),
    Subject(
        "noise floors", lambda _: written(changed({"k": {"c1": {"ttft_ms.p50": 0.1}}}, VALUES)), _of_noise
    ),
    Subject(
        "Parquet records",
        lambda _: st.binary(max_size=200) | RAW,
        _of_run(f"{CELL}/requests.parquet", lambda run: run.read_cell(Path(CELL).name)),
    ),
    Subject(
        "sampler rows",
        lambda _: st.binary(max_size=100),
        _from_file("rows", lambda p: read_spill(p.parent, 0)),
    ),
    Subject(
        "cell facts, to figures",
        _of_document(DOCUMENTS[1]),
        _of_run(f"{CELL}/cell.json", summarise_folder),
        slow=True,
    ),
    Subject("manifest, to reports", _of_document(DOCUMENTS[0]), _of_run("manifest.json", READERS), slow=True),
    Subject(
        "cell facts, to reports", _of_document(DOCUMENTS[1]), _of_run(f"{CELL}/cell.json", READERS), slow=True
    ),
    Subject("summary, to reports", _of_document(DOCUMENTS[2]), _of_run("summary.json", READERS), slow=True),
    Subject(
        "workload card, to reports",
        lambda _: written(changed({"schema": 1, "cards": {"c2": as_json(_CARD)}}, VALUES)),
        _of_run("workload.json", READERS),
        slow=True,
    ),
    Subject(
        "probe, to reports",
        lambda _: written(changed({"schema": 1, "findings": [_FINDING]}, VALUES)),
        _of_run("probe-llamacpp.json", READERS),
        slow=True,
    ),
    Subject(
        "history, to drift",
        lambda _: lines(changed(_HISTORY, VALUES)),
        _of_run("../history/runs.jsonl", _commands(("history", "--out", "{results}"))),
        slow=True,
    ),
)


def judge(subject: Subject, folders: Folders, case: Any) -> Verdict:
    """Anything but these two verdicts is a traceback, and the finding."""
    try:
        subject.read(folders, case)
    except (BenchError, BadDocumentError) as error:
        hint = (error.hint or "") if isinstance(error, BenchError) else ""
        for text in (str(error), hint):
            assert "\n" not in text, text
            assert inert(text) == text, text
        return "refused"
    return "accepted"
