"""Whatever is said, the door gives typed values or one error: shapes drawn per field, never a traceback."""

import base64
import json
import math
from contextlib import suppress
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from load_answers import CHUNKED, chunked, delta, event, field, head, play
from made import facts, records

from harness.client import Answer
from harness.engines.prometheus import gauge_paths, histogram, read_series
from harness.engines.server import Server
from harness.errors import SetupError
from harness.foreign import BadDocumentError, Secrets, inert, one_line, read_document
from harness.model import as_json
from harness.peers.definitions import TOOLS
from harness.peers.recompute import recompute
from harness.probe.exchange import _read
from harness.record import UNKNOWN, Outcome
from harness.spec.backend_refs import parse_backend
from harness.summary import summarise_cell

KEY = "sk-Very/Secret+0123"
ODD = ["\ud800", "\x1b[31m", "\u202e", "\x00", "é😀", KEY, "", "x" * 5000]
TEXTS = st.sampled_from(ODD) | st.text(max_size=20)
NUMBERS = (
    st.sampled_from([0, -1, 1, 2**31, 10**30, 10**400, 1e30, 0.5, math.inf, math.nan, True]) | st.integers()
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def holds_harm(text):
    return inert(text) != text or KEY.lower() in text.lower()


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def numbers_in(value):
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)


@given(VALUES)
def test_a_document_is_inert_finite_and_without_the_key(value):
    found = read_document(json.dumps(value), Secrets([KEY]).hidden)
    assert not any(map(holds_harm, texts_in(found)))
    assert all(map(math.isfinite, numbers_in(found)))
    json.dumps(found, allow_nan=False).encode()


@given(
    st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-16", "surrogatepass"))
)
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"9" * 5000)
def test_bytes_are_a_document_or_one_error(data):
    with suppress(BadDocumentError):
        read_document(data)


@pytest.mark.parametrize(
    "said",
    [
        KEY,
        KEY.upper(),
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"Bearer {KEY}.".encode()).decode(),
        KEY.encode().hex(),
        "".join(f"\\u{ord(char):04x}" for char in KEY),
        "".join(f"&#{ord(char)};" for char in KEY),
    ],
)
def test_the_key_is_found_in_every_spelling(said):
    hidden = Secrets([KEY]).hidden(f"it was {said}, he said")
    assert len(hidden) == len(f"it was {said}, he said")
    assert hidden.startswith("it was ")
    assert hidden.endswith(", he said")
    assert hidden.count("*") >= len(said) - 14  # what stands before and after it in the same base64


def test_a_word_is_no_key():
    for word in ("", "none", "EMPTY"):
        assert Secrets([word]).hidden("there is none, it is empty") == "there is none, it is empty"


@given(TEXTS)
def test_a_line_is_one_short_inert_line(text):
    line = one_line(text, 50)
    assert len(line) <= 50
    assert "\n" not in line
    assert inert(line) == line


# -- the load ----------------------------------------------------------------------------------------

PLACES = ("choices", "usage", "timings", "error", "object", "id")
DELTAS = ("content", "reasoning", "reasoning_content", "tool_calls", "role", "text")
CALLS = st.fixed_dictionaries({}, optional={"index": VALUES, "id": VALUES, "function": VALUES})
DELTA = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(DELTAS, VALUES) | {"tool_calls": st.lists(CALLS, max_size=2)}
)
CHOICE = st.fixed_dictionaries(
    {}, optional={"delta": DELTA | VALUES, "finish_reason": VALUES, "message": VALUES}
)
USAGE = st.fixed_dictionaries(
    {}, optional={"prompt_tokens": SCALARS, "completion_tokens": SCALARS, "prompt_tokens_details": VALUES}
)
CHUNK = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(PLACES, VALUES)
    | {"choices": st.lists(CHOICE | VALUES, max_size=2) | VALUES, "usage": USAGE | VALUES},
)


@given(st.lists(CHUNK | VALUES, max_size=4), st.booleans())
def test_events_of_any_shape_become_a_record(documents, streamed):
    bodies = [json.dumps(document).encode() for document in documents]
    if streamed:
        body = b"".join(map(event, [delta("a"), *bodies]))
        settled = play([head(CHUNKED), chunked([body])])
    else:
        body = b"".join(bodies[:1])
        settled = play([head(f"content-length: {len(body)}", content_type="application/json") + body])
    assert settled.outcome in set(Outcome)
    for name in ("prompt_tokens", "cached_tokens", "output_tokens"):
        assert field(settled, name) == UNKNOWN or 0 <= field(settled, name) <= 10_000_000
    settled.text.encode()
    json.loads(settled.tool_calls or "[]")
    assert len(settled.finish_reason) <= 64
    assert not holds_harm(settled.finish_reason.replace(KEY, ""))
    assert not holds_harm(settled.error.replace(KEY, ""))
    _read(200, body, [(0.0, len(body))], Secrets([KEY]), stream=streamed)


def test_text_of_no_tokens_was_not_counted():
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}).encode()
    assert (
        field(play([head(CHUNKED), chunked([event(delta("a")), event(usage)])]), "output_tokens") == UNKNOWN
    )
    assert field(play([head(CHUNKED), chunked([event(usage)])]), "output_tokens") == 0


def test_a_key_split_over_events_is_in_no_record():
    body = b"".join(event(delta(char)) for char in "say sk-SECRET again")
    call = {"index": 0, "id": "sk-secret", "function": {"name": "f", "arguments": '{"a":"sk-secret"}'}}
    settled = play([head(CHUNKED), chunked([body, event(delta(tool_calls=[call]))])])
    assert "sk-secret" not in f"{settled.text} {settled.tool_calls} {settled.error}".lower()
    assert settled.text.startswith("say ********* again")
    assert len(settled.text) == settled.events["text_chars"].sum()


COUNTS = st.sampled_from([UNKNOWN, 0, 1, 3, 10_000_000])


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=6))
def test_a_cell_of_any_counts_has_figures(counts):
    rows = [
        {"sent": i, "texts": [i + 10, i + 20], "tokens": tokens, "prompt": prompt, "cached": cached}
        for i, (tokens, prompt, cached) in enumerate(counts)
    ]
    found = records(*rows)
    json.dumps(as_json(summarise_cell(found, facts(), None)), allow_nan=True)
    recompute(TOOLS.values(), found, facts())


# -- outside the load --------------------------------------------------------------------------------


class Said:
    """In the place of the client: the same answer to everything."""

    def __init__(self, status, body):
        self.answer = Answer("http://h:1/x", status, {}, body, (), Secrets([KEY]))

    def ask(self, *_asked, **_options):
        return self.answer


def server_that_says(status, body):
    table = {
        "backend": {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"},
        "server": {
            "ready_path": "/health",
            "startup_timeout_s": 5,
            "version": {"path": "/version", "key": "version"},
            "info": [{"path": "/info", "keys": ["data", "version.x"]}],
            "tokenize": {"path": "/tokenize", "text_field": "prompt", "tokens_key": "data"},
        },
        "prefix_cache": {"enabled": True, "reset": {"path": "/reset", "success_key": "version"}},
        "metrics": {
            "path": "/metrics",
            "counters": {"prompt_tokens": "x:prompt"},
            "histograms": {"ttft": "x:ttft"},
        },
    }
    server = Server(parse_backend(table, "x.toml"), "http://h:1", "m", KEY)
    server._client = Said(status, body)
    return server


ENTRY = st.fixed_dictionaries({}, optional={"id": VALUES, "message": VALUES, "delta": VALUES})
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "data": st.lists(ENTRY | VALUES, max_size=2) | VALUES,
        "version": VALUES,
        "choices": st.lists(ENTRY | VALUES, max_size=2) | VALUES,
        "error": VALUES,
    },
)
METHODS = (
    lambda server: server.model_names(),
    lambda server: server.one_chat([], 4),
    lambda server: server.version(),
    lambda server: server.info(),
    lambda server: server.count_tokens(["a"]),
    lambda server: server.reset_prefix_cache().how,
    lambda server: server.counters(),
    lambda server: server.histograms(),
    lambda server: server.check_reachable(),
)


@given(
    st.sampled_from([200, 200, 200, 204, 302, 400, 401, 404, 500, 999]),
    (SHAPED | VALUES).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=100),
)
def test_each_question_has_a_typed_answer_or_one_error(status, body):
    for method in METHODS:
        try:
            found = method(server_that_says(status, body))
        except SetupError as error:
            found = error.what
            assert "\n" not in found
        json.dumps(found, allow_nan=False)
        assert not any(map(holds_harm, texts_in(found)))


SAMPLE = st.sampled_from(["1", "0", "-1", "NaN", "+Inf", "1e400", "down", "1_0", "", "\x1b", "9" * 400])
LABELS = st.sampled_from(["", '{a="b"}', '{le="1"}', '{le="+Inf"}', '{le="x"}', "{", "}", '{le=""}'])
NAME = st.sampled_from(["x", "x_bucket", "x_sum", "x_count", "y"])


@given(st.lists(st.tuples(NAME, LABELS, SAMPLE), max_size=8))
def test_metrics_are_finite_numbers_or_not_there(lines):
    text = "".join(f"{name}{labels} {value}\n" for name, labels, value in lines)
    for found in (read_series(text, {"a": "x", "b": "x_sum"}, {"kv_use": "y"}),):
        assert all(0 <= value < math.inf for value in found.values())
    shape = histogram(text, "x")
    assert all(value is None or math.isfinite(value) for value in (shape["sum"], shape["count"]))
    assert all(math.isfinite(count) for _, count in shape["buckets"])


@given(VALUES, st.sampled_from(["a", "a.b", "a / b", "a.b / c"]))
def test_gauges_of_any_document_are_finite(value, path):
    document = read_document(json.dumps({"a": value, "b": value, "c": value}))
    assert all(map(math.isfinite, gauge_paths(document, {"running": path}).values()))
