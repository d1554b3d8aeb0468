import dataclasses
import tomllib

import pytest

from harness.errors import SpecError
from harness.host import paths
from harness.spec import files
from harness.spec.backend_refs import apply_variant, load_backend, parse_backend, parse_backend_list
from harness.spec.definition_key import definition_key
from harness.spec.dialect import with_api
from harness.spec.models import load_models

BACKEND = """
[backend]
name = "x"
title = "X"
licence = "MIT"
homepage = "https://example.org"
weights = "gguf"
[server]
ready_path = "/health"
startup_timeout_s = 5
[engine]
args = ["--model", "{model}", "--size", "{size}"]
[engine.values]
size = 3
[process]
program = ["x-server"]
args = ["--plain", "--quiet"]
[dialect]
extra = { a = 1 }
[prefix_cache]
enabled = true
[variants.big]
description = "larger"
args = ["--big"]
values = { size = 9 }
request = { b = 2 }
[variants.bare]
description = "no size"
remove_args = ["--model", "--plain"]
prefix_cache = false
"""


def parse(text=BACKEND):
    return parse_backend(tomllib.loads(text), "x.toml")


@pytest.mark.parametrize("name", ["My Engine", "", "-x", "a/b", "ä", "a\n"])
def test_a_name_that_no_file_or_container_can_have_is_refused(name):
    table = tomllib.loads(BACKEND)
    table["backend"]["name"] = name
    with pytest.raises(SpecError, match=r"must be letters, digits, '\.', '_' and '-'") as caught:
        parse_backend(table, "x.toml")
    assert caught.value.where == "x.toml:backend.name"


@pytest.mark.parametrize("name", sorted(set(paths.definitions("backends")) - {"models"}))
def test_every_shipped_definition_and_variant_is_accepted(name):
    definition = load_backend(name)
    assert definition.name == name
    for variant in definition.variants:
        assert apply_variant(definition, variant) != definition


def test_every_shipped_variant_finds_weights_of_some_model_and_every_backend_of_the_default():
    """Of those that bench starts; OpenVINO's form is given as a folder."""
    models = load_models()
    for name in set(paths.definitions("backends")) - {"models"}:
        definition = load_backend(name)
        for variant in (None, *definition.variants):
            header = apply_variant(definition, variant).backend
            if not (definition.process or definition.compose) or header.weights in ("none", "openvino"):
                continue
            serving = [
                model
                for model, known in models.models.items()
                for track_name, track in known.tracks.items()
                if track.weights == header.weights and header.default_track in ("", track_name)
            ]
            assert serving, f"{name}@{variant}"
            assert variant or models.default in serving or not definition.dialect.chat_path


def test_a_variant_changes_declared_keys_only():
    definition = parse()
    big = apply_variant(definition, "big")
    assert big.engine.args == ("--model", "{model}", "--size", "{size}", "--big")
    assert big.engine.values == {"size": 9}
    assert big.dialect.extra == {"a": 1, "b": 2}
    assert big.dialect.habits == definition.dialect.habits
    drafting = apply_variant(load_backend("vllm"), "spec-ngram").dialect.habits
    assert (drafting.tokens_per_event, load_backend("vllm").dialect.habits.tokens_per_event) == (
        "several",
        "one",
    )
    bare = apply_variant(definition, "bare")
    assert bare.engine.args == ("{model}", "--size", "{size}")
    assert bare.process.args == ("--quiet",)
    assert not bare.prefix_cache.enabled
    unchanged = {"server", "image", "metrics", "variants"}
    for field in dataclasses.fields(definition):
        if field.name in unchanged:
            unchanged.remove(field.name)
            assert getattr(big, field.name) == getattr(definition, field.name)
    assert not unchanged


@pytest.mark.parametrize("api", ["responses", "embeddings", "rerank", "transcriptions"])
def test_an_engine_is_started_for_an_api_as_its_table_says(api):
    own = 'engine_args = ["--pool"]\nremove_args = ["--model"]\nengine_env = { POOL = "1" }\n'
    spoken = with_api(parse(f"{BACKEND}[dialect.apis.{api}]\n{own}").dialect, api)
    started = (spoken.engine_args, spoken.remove_args, spoken.engine_env)
    assert started == (("--pool",), ("--model",), {"POOL": "1"})


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (
            ('"{size}"', '"{sise}"'),
            "x.toml:engine.args: unknown placeholder '{sise}'",
            "did you mean 'size'?",
        ),
        (
            ("{ a = 1 }", "{ n = 2 }"),
            "x.toml:dialect.extra.n: one answer a request is measured",
            "--concurrency",
        ),
        (
            ("{ b = 2 }", "{ n = 2 }"),
            "x.toml:dialect.extra.n: one answer a request is measured",
            "--concurrency",
        ),
        (("size = 9", 'name = "{modl}"'), "x.toml:engine.values: unknown placeholder '{modl}'", "'model'"),
        (('["x-server"]', '["{bim}/x"]'), "x.toml:process.program: unknown placeholder '{bim}'", "'bin'"),
        (('["--big"]', '["{nothing_like_it}"]'), "x.toml:engine.args: unknown placeholder", "known: "),
        (("enabled = true", "enable = true"), "x.toml:prefix_cache: unknown key 'enable'", "'enabled'"),
        (('weights = "gguf"', 'weights = "onnx"'), "x.toml:backend.weights: 'onnx' is not one of", None),
        (
            ('weights = "gguf"', 'weights = "mlc"'),
            "x.toml:backend.weights: bench has no weights in the form 'mlc'",
            "gguf, hf, openvino",
        ),
        (("[server]", "[attach]\nstart = []\n[server]"), "x.toml:attach.start: needs a command", None),
    ],
)
def test_a_wrong_definition_names_the_place(change, message, hint):
    with pytest.raises(SpecError) as caught:
        parse(BACKEND.replace(*change))
    assert message in str(caught.value)
    assert hint is None or hint in caught.value.hint


CONTAINER = """
[image.cpu]
name = "x/x"
tag = "1"
[compose]
port = 1
healthcheck = ["CMD", "x"]
"""


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (CONTAINER.replace("[image.cpu]", "[image.tpu]"), "x.toml:image: unknown key 'tpu'"),
        (CONTAINER.partition("[compose]")[0], "[compose] and [image.DEVICE] go together"),
        ("[compose]" + CONTAINER.partition("[compose]")[2], "[compose] and [image.DEVICE] go together"),
        (CONTAINER.replace("CMD", "RUN"), "x.toml:compose.healthcheck: must be CMD or CMD-SHELL"),
        (
            CONTAINER + 'ipc = "host"\nshm_size = "1g"',
            "x.toml:compose.shm_size: shm_size has no effect with ipc",
        ),
        (CONTAINER.replace('"1"', '"1"\nargs = ["{nothing}"]'), "x.toml:image.cpu.args: unknown placeholder"),
        ('[[server.prepare]]\npath = "/{modle}"', "x.toml:server.prepare[0]: unknown placeholder '{modle}'"),
        ('[[server.failures]]\npattern = "("\nhint = ""', "x.toml:server.failures[0]: not a regular"),
        ('[prefix_cache.reset]\npath = "/{slots}"', "x.toml:prefix_cache.reset.path: unknown placeholder"),
    ],
)
def test_what_a_definition_must_not_contradict(added, message):
    with pytest.raises(SpecError) as caught:
        parse(BACKEND + added)
    assert message in str(caught.value)


def test_a_better_sentence_leaves_a_definition_what_it_is():
    """So that what was measured with it still counts; what it does is another matter."""
    told = BACKEND.replace(
        'weights = "gguf"', 'weights = "gguf"\nbias = ["slow"]\nnote = "n"\nstatus = "dormant"'
    )
    told += '[facts]\nversion = "1"\nsource = "s"\n[attach]\nstart = ["x"]\n'
    assert definition_key(parse(told)) == definition_key(parse())
    assert definition_key(parse(BACKEND.replace('"--quiet"', '"--loud"'))) != definition_key(parse())


INSTALLED = BACKEND + '[process.install]\nrequirements = ["x==1"]\nsize_mb = 127\n' + CONTAINER
INSTALLED += '[metrics]\npath = "/metrics"\n[metrics.json]\npath = "/stats"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("size_mb = 127", "size_mb = 207"),
        ('title = "X"', 'title = "The X server"'),
        ('homepage = "https://example.org"', 'homepage = "https://example.com"'),
        ('licence = "MIT"', 'licence = "Apache-2.0"'),
        ("startup_timeout_s = 5", 'startup_timeout_s = 5\nloading = "503 until it is ready"'),
        ("[engine.values]", "[engine.tunable]\nsize = [3, 9]\n[engine.values]"),
        ("[prefix_cache]", '[prefix_cache]\nnote = "n"'),
        ("[image.cpu]", '[image.cpu]\nnote = "n"'),
        ("[metrics]", '[metrics]\nnote = "n"'),
        ("[metrics.json]", '[metrics.json]\nnote = "n"'),
        ("[variants.bare]", '[variants.loud]\ndescription = "d"\nargs = ["--loud"]\n[variants.bare]'),
        ("[engine.values]", '[[server.failures]]\npattern = "p"\nhint = "h"\n[engine.values]'),
    ],
)
def test_a_remark_is_no_part_of_the_key(before, after):
    changed = INSTALLED.replace(before, after)
    assert parse(changed) != parse(INSTALLED)
    assert definition_key(parse(changed)) == definition_key(parse(INSTALLED))


def test_a_variant_has_a_key_of_its_own():
    big = apply_variant(parse(), "big")
    assert definition_key(big) != definition_key(parse())


def test_json_in_an_argument_is_no_placeholder():
    definition = parse(BACKEND.replace('"--big"', '\'{"method": "ngram"}\''))
    assert definition.variants["big"].args == ('{"method": "ngram"}',)


def test_a_running_server_may_have_a_name_of_the_user():
    old, new, both = parse_backend_list(
        "old=vllm=http://h:1,new=vllm@responses=http://h:2,vllm=vllm=http://h:3+http://h:4"
    )
    assert [ref.label for ref in (old, new, both)] == ["old", "new@responses", "vllm"]
    assert {ref.definition.name for ref in (old, new, both)} == {"vllm"}
    assert (old.url, new.api, both.urls) == ("http://h:1", "responses", ("http://h:3", "http://h:4"))
    chat, messages = parse_backend_list("old=openai=http://h:1", ["chat", "messages"])
    assert (chat.label, messages.label) == ("old", "old@messages")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("https://gateway.example/team/v1/", "https://gateway.example/team"),
    ],
)
def test_a_url_is_taken_as_clients_are_given_it(given, url):
    (ref,) = parse_backend_list(f"openai={given}")
    assert (ref.url, ref.label) == (url, "openai")


def test_a_name_of_ones_own_for_a_url_is_refused_with_the_form_that_takes_it():
    with pytest.raises(SpecError) as caught:
        parse_backend_list("mine=http://h:1")
    assert caught.value.hint == (
        "its engine stands before the URL: mine=vllm=URL, or mine=openai=URL for any server; "
        "`bench mine=URL` recognises it"
    )
    with pytest.raises(SpecError) as caught:
        parse_backend_list("vlm=http://h:1")
    assert caught.value.hint.endswith("; did you mean 'vllm'?")


def test_no_name_of_ones_own_is_suggested_in_place_of_a_file_that_is_none():
    with pytest.raises(SpecError, match="no such file") as caught:
        parse_backend_list("./none.toml=http://h:1")
    assert caught.value.hint is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("openai=localhost:8000", "'localhost:8000' is not an http:// or https:// URL"),
        ("openai=http://", "is not an http:// or https:// URL"),
        ("openai=http://h:1/?key=secret", "without '?' or '#'"),
        ("openai=http://me:secret@h:1", "the URL holds a user name or password"),
        ("vllm@", "a variant is missing after '@'"),
        ("vllm@no-prefix-cach", "has no variant 'no-prefix-cach'"),
        ("vlm", "unknown backend 'vlm'"),
        ("vllm,vllm", "'vllm' is listed twice"),
        (" , ", "no backend given"),
        ("old=vllm=http://h:1,old=vllm=http://h:2", "'old' is listed twice"),
        ("vllm=openai=http://h:1", "is the name of another engine"),
        ("my server=openai=http://h:1", "not 'my server'"),
        ("old=vllm==0.11=http://h:1", "a running server has one version"),
        ("old=vllm=", "a URL is missing after '='"),
    ],
)
def test_a_wrong_entry_of_backends_is_one_sentence(entry, message):
    with pytest.raises(SpecError) as caught:
        parse_backend_list(entry)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_entries_with_urls_and_variants_stand_side_by_side():
    refs = parse_backend_list("vllm@no-prefix-cache, openai=http://a:1, openai=http://b:2")
    assert [(ref.label, ref.url) for ref in refs] == [
        ("vllm@no-prefix-cache", None),
        ("openai", "http://a:1"),
        ("openai", "http://b:2"),
    ]


def test_a_variant_with_a_program_needs_no_environment():
    built = apply_variant(load_backend("llamacpp"), "built")
    assert (built.process.program, built.process.install) == (("llama-server",), None)
    assert load_backend("llamacpp").process.install is not None


def test_a_front_that_hands_requests_to_vllm_unchanged_takes_its_constraints():
    front, engine = (load_backend(name).dialect.structured for name in ("ray-vllm", "vllm"))
    assert front == engine


@pytest.mark.parametrize("name", files.names("backends"))
def test_an_engine_that_takes_a_pattern_is_given_choices_too(name):
    """A choice is a pattern: the routers of SGLang and LMDeploy left it out, and their answers were free."""
    dialect = load_backend(name).dialect
    for api in dialect.api_names:
        structured = with_api(dialect, api).structured
        assert not structured.regex or structured.choice


@pytest.mark.parametrize("name", ["aphrodite", "lmdeploy", "ray-vllm", "vllm"])
def test_an_engine_that_refuses_tools_without_a_parser_is_started_with_one(name):
    engine = load_backend(name).engine
    assert "{tool_parser}" in " ".join((*engine.args, *engine.files.values()))
    assert engine.values["tool_parser"]


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("aphrodite", ["DO_NOT_TRACK"]),
        ("modular-max", ["MODULAR_TELEMETRY_ENABLED", "OTEL_SDK_DISABLED"]),  # its compiler, its server
        ("ray-vllm", ["RAY_USAGE_STATS_ENABLED", "VLLM_NO_USAGE_STATS"]),
        ("tensorrt-llm", ["DO_NOT_TRACK"]),
        ("vllm", ["VLLM_NO_USAGE_STATS"]),
    ],
)
def test_an_engine_that_is_started_sends_nothing_to_its_makers(name, variables):
    definition = load_backend(name)
    own = definition.process.env if definition.process else {}
    assert set(variables) <= {**definition.engine.env, **own}.keys()


def test_the_options_file_of_tensorrt_llm_says_the_share_of_memory_again():
    engine = load_backend("tensorrt-llm").engine
    assert "  free_gpu_memory_fraction: {memory_share}\n" in engine.files["options.yaml"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lmdeploy-router", "--routing-strategy min_expected_latency"),  # 0.18 knows no cache_aware
        ("xinference", "XINFERENCE_AUTH_ADVANCED=0 xinference-local"),  # which asks for an account by default
    ],
)
def test_a_command_that_is_shown_is_one_that_the_newest_release_takes(name, words):
    assert any(words in line for line in load_backend(name).attach.start)


def test_aphrodite_is_read_as_the_engine_that_it_is_a_fork_of():
    parent, fork = load_backend("vllm"), load_backend("aphrodite")
    counters = {
        name: series.replace("aphrodite:", "vllm:")
        for name, series in dataclasses.asdict(fork.metrics.counters).items()
    }
    assert counters == dataclasses.asdict(parent.metrics.counters)
    effective = {
        name: path.replace("aphrodite_config", "vllm_config") for name, path in fork.server.effective.items()
    }
    assert effective == parent.server.effective
    assert set(fork.dialect.api_names) == {"chat", "completions", "responses", "messages"}
    for api in fork.dialect.api_names:
        ours, theirs = with_api(fork.dialect, api), with_api(parent.dialect, api)
        for asked in ("structured", "exact_output", "seed", "extra"):
            assert getattr(ours, asked) == getattr(theirs, asked), (api, asked)
