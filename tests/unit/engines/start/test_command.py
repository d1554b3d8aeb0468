import dataclasses
import json
import sys
from pathlib import Path

import pytest

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.weights import Weights
from harness.engines.start.command import (
    build_command,
    configured,
    facts_ahead,
    values_in_use,
    without_secret_arguments,
)
from harness.engines.start.launch_choice import LaunchChoice, as_launched
from harness.errors import SpecError
from harness.host import paths
from harness.host.cpus import computing_cpus
from harness.spec.backend import BackendRef, Process
from harness.spec.backend_refs import apply_variant, load_backend
from harness.spec.models import Model

ENV = EngineEnv(Path("/env/bin/python"), {}, "1", "")
LOCAL = Weights("/models/m.gguf", "t", "Q4", "ab" * 32, None, "")
HUB = Weights("org/model", "t", "bf16", None, None, "")


def command(name, *, weights=LOCAL, overrides=None, host="127.0.0.1", variant=None):
    definition = configured(apply_variant(load_backend(name), variant), None, overrides or {})
    return build_command(definition, env=ENV, weights=weights, port=4711, scratch=Path("/scratch"), host=host)


def after(argv, flag):
    return argv[argv.index(flag) + 1]


def test_every_placeholder_is_filled():
    argv = command("llamacpp").argv
    assert argv[0] == "/env/bin/python"
    assert Path(argv[1]).is_file()
    assert after(argv, "--model") == "/models/m.gguf"
    assert after(argv, "--port") == "4711"
    assert after(argv, "--slot-save-path") == "/scratch"
    assert after(argv, "--threads") == str(computing_cpus())
    assert not [part for part in argv if "{" in part]


LONG = "/scratch/users/firstname.lastname/job.12345678/bench-scratch-engine-abcdefgh"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("scratch", "sockets"), [("/scratch", "/scratch"), (LONG, "/tmp")])
def test_sockets_between_the_processes_of_vllm_go_with_the_folder_of_its_start(device, scratch, sockets):
    """One that is killed leaves them, below /tmp by default. It cannot make one with too long a path."""
    ref = BackendRef(load_backend("vllm"), None, None)
    choice = LaunchChoice("process", "", device=device)
    made = configured(as_launched(ref, choice).definition, None, {}, choice)
    env = build_command(made, env=ENV, weights=HUB, port=4711, scratch=Path(scratch)).env
    assert env["VLLM_RPC_BASE_PATH"] == sockets


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_it_listens_where_it_is_told(host):
    assert after(command("llamacpp", host=host).argv, "--host") == host


def test_the_total_context_follows_what_the_user_sets():
    argv = command("llamacpp", overrides={"context_tokens": "1000", "max_sequences": "3"}).argv
    assert after(argv, "--ctx-size") == "3000"
    assert after(argv, "--parallel") == "3"


def test_weights_are_named_as_the_engine_takes_them_from_a_file_or_from_the_hub():
    assert command("llamacpp").argv[2:4] == ("--model", "/models/m.gguf")
    assert command("llamacpp", weights=HUB).argv[2:4] == ("--hf-repo", "org/model")
    assert command("vllm", weights=HUB).argv[2] == "org/model"


def test_a_draft_model_is_the_model_itself_until_it_is_set():
    own = command("llamacpp", variant="spec-draft").argv
    assert after(own, "--model-draft") == after(own, "--model")
    other = command("llamacpp", variant="spec-draft", overrides={"draft_model": "/models/small.gguf"}).argv
    assert after(other, "--model-draft") == "/models/small.gguf"
    drafting = command("vllm", weights=HUB, variant="spec-draft").argv
    assert json.loads(after(drafting, "--speculative-config")) == {
        "method": "draft_model",
        "model": "org/model",
        "num_speculative_tokens": 4,
    }


def test_files_of_an_engine_hold_its_values(monkeypatch):
    plain = load_backend("tensorrt-llm")
    process = Process(program=("trtllm-serve",))
    definition = configured(dataclasses.replace(plain, process=process), None, {"block_reuse": "false"})
    made = build_command(definition, env=None, weights=HUB, port=1, scratch=Path("/scratch"))
    assert after(made.argv, "--extra_llm_api_options") == "/scratch/options.yaml"
    assert "enable_block_reuse: false\n" in made.files["options.yaml"]
    assert "{" not in made.files["options.yaml"]


def test_the_harness_can_be_an_engine():
    made = command("truth", weights=None)
    assert made.argv[:5] == (sys.executable, "-P", "-m", "harness", "truth")
    checkout = str(paths.CHECKOUT)  # which may not be installed
    assert made.env["PYTHONPATH"] == checkout
    assert command("vllm").env.get("PYTHONPATH") != checkout


def test_a_hub_model_may_go_online_and_gets_the_hub_token(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_123")
    online, offline = command("vllm", weights=HUB), command("vllm")
    assert (online.env["HF_HUB_OFFLINE"], offline.env["HF_HUB_OFFLINE"]) == ("0", "1")
    assert (online.env["HF_TOKEN"], "HF_TOKEN" in offline.env) == ("hf_123", False)


def test_engines_see_no_keys_and_records_hold_no_secrets(monkeypatch):
    secrets = {"BENCH_API_KEY": "s1", "OPENAI_API_KEY": "s2", "VLLM_API_KEY": "s3", "MY_PASSWORD": "s4"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_TOKEN", "s5")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:s6@proxy:1")
    monkeypatch.setenv("OMP_SCHEDULE", "static")
    made = command("vllm", weights=HUB)
    assert not set(secrets) & set(made.env)
    recorded = made.recorded_env()
    assert recorded["OMP_SCHEDULE"] == "static"
    assert recorded["HF_TOKEN"] == recorded["HTTPS_PROXY"] == "(not recorded)"
    assert recorded["VLLM_SERVER_DEV_MODE"] == "1"
    assert "HOME" not in recorded


def test_values_of_flags_for_secrets_are_not_recorded():
    engine = (
        "serve M --api-key a b --port 1 --hf-token=c --api_key d --ssl-keyfile-password e --tokenizer t -v "
        "--token f -hft g --token-limit 5"
    )
    kept = (
        "serve M --api-key X X --port 1 --hf-token=X --api_key X --ssl-keyfile-password X --tokenizer t -v "
        "--token X -hft X --token-limit 5"
    )
    recorded = without_secret_arguments(engine.split())
    assert recorded == [word.replace("X", "(not recorded)") for word in kept.split()]
    shown = facts_ahead(load_backend("vllm"), LaunchChoice("process", ""))["command"]
    assert "(not recorded)" not in shown
    assert "--max-num-batched-tokens" in shown


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("--header=Authorization:Bearer abc", "--header=Authorization:Bearer §"),
        ("Authorization: Basic abc", "Authorization: Basic §"),
        ("--env=HF_TOKEN=abc", "--env=HF_TOKEN=§"),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=§"),
        ("HF_TOKEN=abc exec vllm serve M", "HF_TOKEN=§ exec vllm serve M"),
        ("export A='1' DB_PASSWORD='a.b' && serve", "export A='1' DB_PASSWORD='§' && serve"),
        ('{"x-api-key": "abc", "n": 1}', '{"x-api-key": "§", "n": 1}'),
        ("--proxy=http://me:abc@h:1/v1", "--proxy=http://§@h:1/v1"),
        ("serve --api-key=abc --port 1", "serve --api-key=§ --port 1"),
        ("serve --api-key abc --port 1", "serve --api-key § --port 1"),
        ("exec serve\n  --hf-token\n  'abc'", "exec serve\n  --hf-token\n  '§'"),
        ("llama-server -hft abc && hub --token=abc", "llama-server -hft § && hub --token=§"),
        ("serve --no-api-key --port 1 --tokenizer a", "serve --no-api-key --port 1 --tokenizer a"),
        ('{"pad_token": 0, "max_tokens": 4}', '{"pad_token": 0, "max_tokens": 4}'),
        ("--tokenizer=a --monkey=1 MAX_TOKENS=4 KEYS:1", "--tokenizer=a --monkey=1 MAX_TOKENS=4 KEYS:1"),
        ("--ssl-keyfile=/a/key.pem", "--ssl-keyfile=/a/key.pem"),
    ],
)
def test_secrets_within_a_word_are_not_recorded(word, kept):
    assert without_secret_arguments(["sh", "-c", word])[-1] == kept.replace("§", "(not recorded)")


def test_an_engine_sees_its_own_settings_and_they_are_recorded(monkeypatch):
    own = {"VLLM_USE_FLASHINFER_SAMPLER": "0", "SGLANG_USE_SGL_FA3_KERNEL": "1", "LMDEPLOY_EXECUTOR": "mp"}
    for name, value in {**own, "MY_OWN_SETTING": "1"}.items():
        monkeypatch.setenv(name, value)
    for engine in ("vllm", "sglang", "llamacpp"):
        made = command(engine)
        assert own.items() <= made.recorded_env().items()
        assert "MY_OWN_SETTING" not in made.env


@pytest.mark.parametrize(
    ("overrides", "message", "hint"),
    [
        (
            {"max_sequence": "4"},
            "backend 'vllm' has no value 'max_sequence'",
            "did you mean 'max_sequences'?",
        ),
        ({"max_sequences": "four"}, "'four' is not a whole number", None),
        ({"max_sequences": "0"}, "max_sequences=0: must be at least 1, not 0", None),
        ({"tensor_parallel": "0"}, "tensor_parallel=0: must be at least 1, not 0", None),
        ({"memory_share": "90"}, "memory_share=90: must be above 0 and at most 1, not 90", "nine tenths"),
        ({"memory_share": "0"}, "memory_share=0: must be above 0 and at most 1, not 0", "nine tenths"),
        (
            {"context_tokens": "9000"},
            "context_tokens is 9000, but the model's context is 8192",
            "--engine-set",
        ),
    ],
)
def test_wrong_values_are_refused(overrides, message, hint):
    model = Model("M", "MIT", context_tokens=8192)
    with pytest.raises(SpecError) as caught:
        configured(load_backend("vllm"), model, overrides)
    assert message in str(caught.value)
    assert hint is None or hint in caught.value.hint


def test_a_placeholder_without_a_value_is_named():
    truth = load_backend("truth")
    odd = dataclasses.replace(truth, engine=dataclasses.replace(truth.engine, args=("{model}",)))
    with pytest.raises(SpecError, match=r"backend truth:engine.args: nothing to fill '\{model\}' with"):
        build_command(odd, env=None, weights=None, port=1, scratch=Path("/s"))


# vLLM and llama.cpp, as they are started: keys that --engine-set refuses, and ones that it takes.
STARTED = [
    ("vllm", LaunchChoice("process", ""), {"gpu_layers"}, {"kv_cache_gib", "threads", "memory_share"}),
    ("vllm", LaunchChoice("process", "", "cuda"), {"kv_cache_gib", "threads"}, {"memory_share"}),
    ("vllm", LaunchChoice("compose", "", "cuda"), {"kv_cache_gib", "threads"}, {"memory_share"}),
    ("vllm", LaunchChoice("compose", "", "cpu"), {"threads"}, {"kv_cache_gib", "memory_share"}),
    ("llamacpp", LaunchChoice("process", ""), {"gpu_layers"}, {"threads", "cache_ram_mib"}),
    ("llamacpp", LaunchChoice("process", "", "cuda"), set(), {"gpu_layers", "threads"}),
    ("llamacpp", LaunchChoice("compose", "", "cpu"), {"gpu_layers"}, {"threads"}),
    ("llamacpp", LaunchChoice("attach", ""), set(), {"gpu_layers", "threads"}),
]


@pytest.mark.parametrize(("name", "choice", "refused", "taken"), STARTED)
def test_a_value_that_does_not_reach_the_engine_is_refused(name, choice, refused, taken):
    definition = as_launched(BackendRef(load_backend(name), None, None), choice).definition
    for key in sorted(refused):
        with pytest.raises(SpecError, match=f"'{key}'"):
            configured(definition, None, {key: "2"}, choice)
    values = configured(definition, None, dict.fromkeys(taken, "1"), choice).engine.values
    assert taken <= values.keys()
    assert not refused & values_in_use(definition, choice).keys()


def test_a_value_of_arguments_that_an_image_removes_is_neither_taken_nor_recorded():
    plain = load_backend("tgi")
    on_cpu, on_cuda = (LaunchChoice("compose", "", device) for device in ("cpu", "cuda"))
    with pytest.raises(SpecError, match="backend 'tgi' takes no 'memory_share' as it is started here"):
        configured(plain, None, {"memory_share": "0.5"}, on_cpu)
    assert "memory_share" not in values_in_use(plain, on_cpu)
    assert not {"--cuda-memory-fraction", "0.9"} & {*facts_ahead(plain, on_cpu)["command"]}
    assert values_in_use(plain, on_cuda)["memory_share"] == 0.9
    assert "0.9" in facts_ahead(plain, on_cuda)["command"]


def test_a_value_of_arguments_that_a_variant_removes_is_neither_taken_nor_recorded():
    launch = LaunchChoice("compose", "", "cuda")
    quantised = apply_variant(load_backend("tgi"), "awq")
    with pytest.raises(SpecError, match="backend 'tgi' takes no 'dtype' as it is started here"):
        configured(quantised, None, {"dtype": "float32"}, launch)
    assert "dtype" not in values_in_use(quantised, launch)
    assert values_in_use(load_backend("tgi"), launch)["dtype"] == "bfloat16"


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_a_value_that_is_not_finite_is_refused(text):
    with pytest.raises(SpecError, match=f"'{text}' is not a number"):
        configured(load_backend("vllm"), None, {"kv_cache_gib": text})


def test_a_refusal_says_that_another_start_would_take_the_value():
    with pytest.raises(SpecError, match="backend 'llamacpp' takes no 'gpu_layers' as it is started here"):
        configured(load_backend("llamacpp"), None, {"gpu_layers": "10"}, LaunchChoice("process", ""))


def test_an_engine_in_a_container_gets_a_thread_fewer_than_the_container_has_cpus(monkeypatch):
    monkeypatch.setenv("BENCH_CPUSET", "0-3,6")
    plain = load_backend("llamacpp")
    threads = {
        mode: configured(plain, None, {}, LaunchChoice(mode, "", "cpu")).engine.values["threads"]
        for mode in ("compose", "process")
    }
    assert threads == {"compose": 4, "process": computing_cpus()}


SETTINGS = """
OLLAMA_MODELS PYTORCH_CUDA_ALLOC_CONF HSA_OVERRIDE_GFX_VERSION MODULAR_NVPTX_COMPILER_PATH
MAX_SERVE_LOGS_CONSOLE_LEVEL RAY_DEDUP_LOGS CT2_USE_MKL MLX_METAL_DEBUG VLLM_LOGGING_LEVEL NCCL_DEBUG
""".split()
WITHHELD = """
OLLAMA_API_KEY OLLAMA_HOST MODULAR_AUTH_TOKEN MAX_SERVE_HOST MAX_SERVE_PORT RAY_ADDRESS RAY_AUTH_MODE
RAY_AUTH_TOKEN RAY_JOB_ID MLX_SECRET AWS_REGION DATABASE_URL
""".split()


def test_an_engine_sees_its_own_settings_and_neither_secrets_nor_addresses(monkeypatch):
    for name in (*SETTINGS, *WITHHELD):
        monkeypatch.setenv(name, "as set here")
    seen = {name for name, value in command("llamacpp").env.items() if value == "as set here"}
    assert seen == set(SETTINGS)
