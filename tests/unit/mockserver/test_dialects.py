"""Each engine's dialect: what it accepts, what it refuses, and how. Its streams are in test_truth_habits."""

import json
import re
from dataclasses import asdict, astuple, fields, replace

import pytest

from harness.host import paths
from harness.mockserver.ask import BadAskError, parse_ask
from harness.mockserver.declared import declared_dialect
from harness.mockserver.dialect import Dialect
from harness.mockserver.dialects import DIALECTS
from harness.mockserver.engine import Engine, Job
from harness.mockserver.ledger import Record
from harness.mockserver.options import Options
from harness.mockserver.routes import Routes, error
from harness.mockserver.script import Distribution
from harness.mockserver.wire import Request
from harness.spec.backend_refs import load_backend

CHAT = [{"role": "user", "content": "Which?"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
OPENAI_SHAPE = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}


def ask(dialect, **fields):
    body = json.dumps({"messages": CHAT, **fields}).encode()
    return parse_ask(body, declared_dialect(dialect), chat=True, chars_per_token=4)


def options(dialect, **more):
    spoken = declared_dialect(dialect)
    return Options(
        habits=spoken.habits,
        ttft_ms=Distribution.parse("1"),
        gap_ms=Distribution.parse("1"),
        dialect=spoken,
        cache_block_tokens=spoken.cache_block_tokens,
        **more,
    )


def routes(dialect, **more):
    chosen = options(dialect, **more)
    engine = Engine(chosen)
    return Routes(chosen, engine), engine


def get(made, path, method="GET", body=None):
    """Status and body."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = made.answer(Request(method, path, {}, data))
    if answer is None:
        return 404, b""
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), content


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("vllm", OPENAI_SHAPE),
        ("vllm", {"structured_outputs": {"json": SCHEMA}}),
        ("sglang", OPENAI_SHAPE),
        ("tgi", {"response_format": {"type": "json", "value": SCHEMA}}),
        ("tgi", {"response_format": {"type": "json_schema", "value": {"name": "x", "schema": SCHEMA}}}),
        ("llamacpp", OPENAI_SHAPE),
        ("llamacpp", {"json_schema": SCHEMA}),
        ("llamacpp", {"response_format": {"type": "json_object", "schema": SCHEMA}}),
        ("ollama", OPENAI_SHAPE),
        ("lmdeploy", OPENAI_SHAPE),
        ("tensorrt-llm", {"response_format": {"type": "json", "schema": SCHEMA}}),
        ("aphrodite", {"structured_outputs": {"json": SCHEMA}}),
    ],
)
def test_a_schema_in_an_engines_own_shape_is_kept_to(dialect, fields):
    assert "".join(ask(dialect, **fields).words) == '{"a": 0}'


@pytest.mark.parametrize(
    ("dialect", "fields", "said"),
    [
        ("vllm", {"structured_outputs": {"choice": ["b", "c"]}}, "b"),
        ("vllm", {"structured_outputs": {"regex": "x{3}"}}, "xxx"),
        ("sglang", {"regex": "x{3}"}, "xxx"),
        ("sglang", {"ebnf": 'root ::= "g"'}, "g"),
        ("tgi", {"response_format": {"type": "regex", "value": "x{3}"}}, "xxx"),
        ("llamacpp", {"grammar": 'root ::= "g"'}, "g"),
        ("lmdeploy", {"response_format": {"type": "regex_schema", "regex_schema": "x{3}"}}, "xxx"),
        ("tensorrt-llm", {"response_format": {"type": "ebnf", "ebnf": 'root ::= "g"'}}, "g"),
    ],
)
def test_other_constraints_in_an_engines_own_words(dialect, fields, said):
    assert "".join(ask(dialect, **fields).words) == said


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("vllm", {"guided_json": SCHEMA}),  # removed from the engine: 200 and free text
        ("sglang", {"structured_outputs": {"regex": "x"}}),
        ("ollama", {"format": SCHEMA}),  # of the native route only
        ("ollama", {"regex": "x"}),
        ("transformers", OPENAI_SHAPE),
        ("mlx-lm", OPENAI_SHAPE),
    ],
)
def test_what_an_engine_does_not_hear_is_answered_free(dialect, fields):
    assert ask(dialect, **fields).words == ()


@pytest.mark.parametrize(
    ("dialect", "fields", "status"),
    [
        ("tgi", OPENAI_SHAPE, 422),
        ("tgi", {"top_p": 1.0}, 422),
        ("tensorrt-llm", {"structured_outputs": {"regex": "x"}}, 400),
        ("tensorrt-llm", {"guided_json": SCHEMA}, 400),
        ("transformers", {"ignore_eos": True}, 422),
        ("vllm", {"response_format": {"type": "yaml"}}, 400),
        ("llamacpp", {"response_format": {"type": "json_schema"}}, 400),
        ("llamacpp", {"grammar": "nonsense"}, 400),
        ("sglang", {"regex": "("}, 400),
    ],
)
def test_what_an_engine_refuses(dialect, fields, status):
    with pytest.raises(BadAskError):
        ask(dialect, **fields)
    assert declared_dialect(dialect).errors.invalid == status


def test_a_length_is_forced_only_where_the_engine_can():
    assert ask("vllm", ignore_eos=True).ignore_eos
    assert not ask("tgi", ignore_eos=True).ignore_eos
    assert ask("ollama", min_tokens=9).min_tokens == 0


def run(engine, asked):
    """Cached tokens of one request, from start to end."""
    job = Job(asked, Record(0, "/", 0, 0), engine.rng(b""), None, gzip=False, close=False)
    engine.submit(job, 0, lambda _: None)
    for write in engine.writes(job, 0):
        if write.events:
            job.record.write_ns.append(write.due_ns)
            job.record.tokens += write.tokens
    engine.leave(job, 0)
    return job.record.cached_tokens


def test_the_cache_matches_as_the_engine_does_and_is_emptied_by_its_own_route():
    long = {"messages": [{"role": "user", "content": "word " * 50}], "max_tokens": 4}
    for dialect, block in (
        ("vllm", 16),
        ("sglang", 1),
        ("llamacpp", 1),
        ("lmdeploy", 64),
        ("tensorrt-llm", 32),
    ):
        made, engine = routes(dialect)
        asked = parse_ask(json.dumps(long).encode(), declared_dialect(dialect), chat=True, chars_per_token=4)
        cached = (len(asked.prompt) - 1) // block * block
        assert (run(engine, asked), run(engine, asked)) == (0, cached), dialect
        reset = declared_dialect(dialect).reset
        if reset:
            assert get(made, reset.path, "POST")[0] == 200
            assert run(engine, asked) == 0


def test_salted_and_uncached_prompts_find_nothing():
    _, engine = routes("vllm")
    for salt, cached in (("a", 0), ("b", 0), ("a", 16)):
        asked = ask("vllm", cache_salt=salt, messages=[{"role": "user", "content": "x" * 64}])
        assert run(engine, asked) == cached
    _, engine = routes("llamacpp")
    for _ in range(2):
        assert run(engine, ask("llamacpp", cache_prompt=False)) == 0


def test_a_reset_while_requests_run_is_refused_as_the_engine_refuses_it():
    for dialect, path, status in (("vllm", "/reset_prefix_cache", 200), ("sglang", "/flush_cache", 400)):
        made, engine = routes(dialect)
        job = Job(ask(dialect), Record(0, "/", 0, 0), engine.rng(b""), None, gzip=False, close=False)
        engine.submit(job, 0, lambda _: None)
        seen, body = get(made, path, "POST")
        assert seen == status
        assert b"Cache flushed" not in body
        if dialect == "vllm":
            assert json.loads(body) == {"success": False}


def test_metrics_have_every_series_and_count_what_was_served():
    for name in DIALECTS:
        dialect = declared_dialect(name)
        if not dialect.metrics_path:
            continue
        made, engine = routes(name)
        for _ in range(2):
            run(engine, ask(name, max_tokens=5, stream=True))
        text = get(made, dialect.metrics_path)[1].decode()
        for series in dialect.series:  # but transfers from another engine, of which there is none
            assert (f"# TYPE {series.name} {series.kind}\n" in text) == (series.quantity != "transfer")
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        bare = {key.partition("{")[0]: float(value) for key, value in values.items() if "le=" not in key}
        for series in dialect.series:
            match series.quantity:
                case "generated":
                    assert bare[series.name] == 10
                case "output_lengths":
                    assert (bare[f"{series.name}_sum"], bare[f"{series.name}_count"]) == (10, 2)
                case "itl":
                    assert bare[f"{series.name}_sum"] > 0
                case "ttft" | "e2e" | "tpot":
                    assert bare[f"{series.name}_count"] == 2


def test_json_metrics_of_the_engine_that_has_them():
    made, _ = routes("tensorrt-llm")
    (entry,) = json.loads(get(made, "/metrics")[1])
    assert entry["numActiveRequests"] == 0
    assert "cacheHitRate" in entry["kvCacheStats"]


def test_a_model_is_brought_to_ollama_over_its_own_routes():
    made, engine = routes("ollama", model_name="first")
    assert get(made, "/api/pull", "POST", {"model": "hf.co/a/b"})[0] == 200
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert get(made, f"/api/blobs/sha256:{digest}", "POST", b"hello")[0] == 201
    assert get(made, f"/api/blobs/sha256:{digest}", "POST", b"other")[0] == 400
    assert get(made, "/api/create", "POST", {"model": "mine"})[0] == 200
    assert {"first", "mine"} == made.model_names
    asked = ask("ollama", max_tokens=3)
    assert (run(engine, asked), run(engine, asked)) == (0, len(asked.prompt) - 1)
    assert get(made, "/api/generate", "POST", {"model": "mine", "keep_alive": 0})[0] == 200
    assert run(engine, asked) == 0


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_errors_are_in_the_shape_of_the_engine_and_version_says_simulated(name):
    made, _ = routes(name)
    dialect = declared_dialect(name)
    body = json.loads(error(dialect, 400, "no such thing").partition(b"\r\n\r\n")[2])
    assert "no such thing" in json.dumps(body)
    assert get(made, dialect.health_path)[0] == 200
    if dialect.version_path:
        assert b"+simulated" in get(made, dialect.version_path)[1]
    if dialect.tokenizer:
        answer = json.loads(
            get(made, dialect.tokenizer.path, "POST", {dialect.tokenizer.text_field: "abcdefgh"})[1]
        )
        tokens = answer[dialect.tokenizer.tokens_key] if dialect.tokenizer.tokens_key else answer
        assert len(tokens) == 2
        assert get(made, dialect.tokenizer.path, "POST", {})[0] == dialect.errors.invalid
    assert get(made, "/no/such/route")[0] == 404


@pytest.mark.parametrize("name", sorted(DIALECTS.keys() & paths.definitions("backends").keys()))
def test_endpoints_and_series_stand_in_the_definition_alone(name):
    plain = Dialect(name)
    endpoints = [field.name for field in fields(Dialect) if field.name.endswith("_path")]
    for copied in (*endpoints, "tokenizer", "reset", "series"):
        assert getattr(DIALECTS[name], copied) == getattr(plain, copied), copied


def test_a_simulator_counts_under_the_names_that_bench_reads():
    for name in DIALECTS.keys() & paths.definitions("backends").keys():
        declared = load_backend(name).metrics
        if declared is None:
            continue
        text = get(routes(name)[0], declared.path)[1].decode()
        unused = DIALECTS[name].unused_counters
        counters = [terms for key, terms in asdict(declared.counters).items() if key not in unused]
        histograms = replace(declared.histograms, transfer="")  # from another engine, of which there is none
        read = [*counters, *astuple(declared.gauges), *astuple(histograms)]
        named = [term for terms in read for term in re.split(" [+/] ", terms)]
        for series in (term for term in named if term and "{" not in term):
            assert f"# TYPE {series.removesuffix('_sum')} " in text, f"{name}: {series}"
