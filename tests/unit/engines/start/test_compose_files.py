"""compose/ is made of backends/, says what they say, and is not behind them."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.engines.provide.weights import Weights
from harness.engines.start.command import configured, filled_files, settable, write_files
from harness.engines.start.containers import compose_launch
from harness.engines.start.containers.files import CPU, GPU, MAIN, ROCM, compose_files
from harness.engines.start.containers.service import plain_fill, ports_of, service
from harness.engines.start.containers.yaml_text import yaml_text
from harness.errors import SpecError
from harness.host import paths
from harness.spec.backend_refs import apply_variant, load_backend, parse_backend

SHIPPED = paths.shipped("compose")
WITH_IMAGE = [
    definition
    for name in sorted(paths.definitions("backends"))
    if name != "models" and (definition := load_backend(name)).compose
]
ENGINES = [definition.name for definition in WITH_IMAGE]


@pytest.fixture(scope="module")
def made():
    return compose_files(WITH_IMAGE)


def block(text, name):
    """The lines of one service."""
    found = re.search(rf"^  {name}:\n((?:    .*\n)*)", text, re.MULTILINE)
    return found[1] if found else ""


def test_the_shipped_files_are_what_the_definitions_say_now(made):
    shipped = {str(p.relative_to(SHIPPED)): p.read_text() for p in SHIPPED.rglob("*") if p.is_file()}
    assert shipped == made, "run `bench compose --write compose`"


def test_there_is_a_profile_for_every_engine(made):
    assert {"aphrodite", "llamacpp", "lmdeploy", "ollama", "sglang", "tensorrt-llm", "tgi", "vllm"} < {
        *ENGINES
    }
    for name in ENGINES:
        assert f'profiles: ["{name}"]' in block(made[MAIN], name)


def test_nothing_is_published_beyond_this_machine(made):
    published = re.findall(r"ports: \[(.*)\]", made[MAIN])
    assert len(published) == len(ENGINES)
    assert all(one.startswith('"127.0.0.1:') for text in published for one in text.split(", "))
    assert not any("ports" in made[overlay] for overlay in (GPU, CPU, ROCM))


def test_a_gpu_by_default_and_by_number(made):
    for definition in WITH_IMAGE:
        text = block(made[GPU], definition.name)
        assert ('device_ids: ["${BENCH_GPUS:-0}"]' in text) == bool(definition.image.cuda)
        assert "count" not in text, "docker-compose 1.29 fails on a count from a variable"


def test_overlays_hold_the_engines_that_have_such_an_image(made):
    for overlay, device in ((CPU, "cpu"), (ROCM, "rocm")):
        for definition in WITH_IMAGE:
            only = definition.devices == [device]  # then the main file has it already
            there = device in definition.devices and not only
            assert bool(block(made[overlay], definition.name)) == there
        without = re.search(r"not to be started with this file: (.*)$", made[overlay], re.M)[1].split(", ")
        assert without == [one.name for one in WITH_IMAGE if device not in one.devices]
    assert "/dev/kfd" not in made[CPU]
    assert "nvidia" not in made[CPU] + made[ROCM]


def test_a_token_is_passed_on_and_never_written(made):
    for text in made.values():
        assert not re.search(r"HF_TOKEN:[ \t]*\S", text)
    assert block(made[MAIN], "vllm").count("HF_TOKEN:\n") == 1


def test_every_variable_is_named_in_the_head(made):
    head = made[MAIN].split("services:")[0]
    used = set(re.findall(r"\$\{(BENCH_[A-Z0-9_]+)", "".join(made.values())))
    assert {name for name in used if not name.startswith("BENCH_IMAGE_") and name not in head} == set()


def started(definition, device, weights, gpus=(), labels=None):
    """The content of the Compose file of one start."""
    fill, mounts = compose_launch._weights_fill(definition, weights)
    hub = not weights.local
    return compose_launch.project_content(
        definition,
        device=device,
        fill=fill,
        mounts=mounts,
        hub=hub,
        gpus=gpus,
        ports=[1234, 1235][: len(ports_of(definition))],
        labels=labels or {},
    )


@pytest.mark.parametrize("name", ENGINES)
def test_by_hand_and_in_a_run_an_engine_gets_the_same_flags(made, name):
    """With each variable at its default; the model and its place are the run's."""
    definition = load_backend(name)
    device = definition.devices[0]
    form = "gguf" if definition.backend.weights == "gguf" else ""
    weights = (
        Weights("org/model", "t", "q", None, None, "hub")
        if definition.engine.fetches
        else Weights(f"/some/where/model{form and '.gguf'}", "t", "q", "00", None, "local")
    )
    threads = {"threads": "-1"} if "threads" in settable(definition) else {}
    configured_one = configured(definition, None, threads)
    content = started(configured_one, device, weights, ["0"])
    mine = content["services"][name]
    port = definition.compose.port
    assert mine["ports"] == [f"127.0.0.1:1234:{port}", f"127.0.0.1:1235:{port + 1}"][: len(mine["ports"])]
    assert len(mine["ports"]) == 1 + definition.metrics_own_port

    def plain(text):
        return re.sub(r"\$\{BENCH_[A-Z0-9_]+:-([^}]*)\}", r"\1", text)

    text = block(made[MAIN], name)
    by_hand = [
        plain(json.loads(part))
        for part in re.findall(r'^      - (".*")$', text.split("environment:")[0], re.M)
    ]
    if not by_hand:
        by_hand = json.loads(re.search(r"command: (\[.*\])", text)[1])
    assert ["org/model" if "/" in part and "Qwen" in part else part for part in by_hand] == mine["command"]
    for key, value in mine["environment"].items():
        shown = f'{key}: "{value}"' if value is not None else f"{key}:"
        assert shown in plain(text)


def test_a_key_in_a_definition_reaches_the_container_and_no_record():
    plain = load_backend("vllm")
    words = (*plain.compose.args, "--api-key", "nvapi-1", "--max-num-seqs", "8")
    compose = replace(plain.compose, env={"NGC_API_KEY": "nvapi-1", "QUIET": "1"}, args=words)
    hub = Weights("org/model", "t", "q", None, None, "hub")
    content = started(replace(plain, compose=compose), "cuda", hub, ["0"])
    assert content["services"]["vllm"]["environment"]["NGC_API_KEY"] == "nvapi-1"
    assert content["services"]["vllm"]["command"][-3] == "nvapi-1"
    recorded = compose_launch._recorded(content)
    assert "nvapi-1" not in yaml_text(recorded)
    kept = recorded["services"]["vllm"]["environment"]
    assert (kept["NGC_API_KEY"], kept["QUIET"], kept["HF_TOKEN"]) == ("(not recorded)", "1", None)
    assert recorded["services"]["vllm"]["command"][-4:] == ["--api-key", "(not recorded)", *words[-2:]]
    assert {**content, "services": 0} == {**recorded, "services": 0}


def test_an_engine_on_amd_sees_the_gpus_that_were_asked_for():
    definition = configured(load_backend("vllm"), None, {"tensor_parallel": "2"})
    hub = Weights("org/model", "t", "q", None, None, "hub")
    asked = compose_launch._gpus(definition, "rocm", ("2", "3", "5"))
    environment = started(definition, "rocm", hub, asked)["services"]["vllm"]["environment"]
    assert environment["HIP_VISIBLE_DEVICES"] == "2,3"
    unasked = started(definition, "rocm", hub, compose_launch._gpus(definition, "rocm", ()))
    assert unasked["services"]["vllm"]["environment"]["HIP_VISIBLE_DEVICES"] is None
    assert compose_launch._gpus(definition, "cpu", ("2", "3")) == []
    assert not compose_launch._seen("rocm", asked)


def test_an_engine_that_fetches_nothing_gets_the_folder_of_weights(made):
    text = block(made[MAIN], "tabbyapi")
    assert '"${BENCH_WEIGHTS:-./weights}:/models:ro"' in text
    assert "HF_TOKEN" not in text
    assert '  model_name: "model"\n' in made["files/tabbyapi/config.yml"]
    assert '    model: "model.gguf"\n' in made["files/localai/models.yaml"]
    assert "BENCH_WEIGHTS" not in block(made[MAIN], "vllm")


def test_a_model_that_an_engine_reads_of_a_file_stands_in_that_file(made, tmp_path):
    definition = configured(load_backend("triton-vllm"), None, {"block_reuse": "false"})
    fill, _ = compose_launch._weights_fill(definition, Weights("org/model", "t", "q", None, None, "hub"))
    write_files(tmp_path, filled_files(definition, fill))
    started = json.loads((tmp_path / "models/bench/1/model.json").read_text())
    assert (started["model"], started["enable_prefix_caching"]) == ("org/model", False)
    by_hand = json.loads(made["files/triton-vllm/models/bench/1/model.json"])
    assert f'"{by_hand["model"]}"' in block(made[MAIN], "triton-vllm"), "its tokenizer is of the same model"


def test_triton_is_asked_for_the_series_of_vllm_that_it_leaves_out_by_default(made):
    given = made["files/triton-vllm/models/bench/config.pbtxt"]
    assert 'parameters: { key: "REPORT_CUSTOM_METRICS" value: { string_value: "true" } }' in given
    declared = load_backend("triton-vllm").metrics
    named = [*asdict(declared.counters).values(), *asdict(declared.gauges).values()]
    assert [name for name in named if name] == ["vllm:prompt_tokens_total", "vllm:generation_tokens_total"]


def test_a_variant_changes_the_command_of_its_container():
    definition = apply_variant(load_backend("vllm"), "no-prefix-cache")
    command = service(definition, "cuda", plain_fill(definition) | {"model": "m"}, hub=False)["command"]
    assert "--no-enable-prefix-caching" in command
    assert "--enable-prefix-caching" not in command
    drafting = configured(apply_variant(load_backend("llamacpp"), "spec-draft"), None, {})
    command = service(drafting, "cpu", plain_fill(drafting) | {"model": "/m.gguf"}, hub=False)["command"]
    assert command[command.index("--model-draft") + 1] == "/m.gguf"


def test_weights_of_this_machine_are_mounted_read_only_and_fetch_nothing():
    definition = configured(load_backend("llamacpp"), None, {})
    weights = Weights("/data/$x/model.gguf", "t", "q", "00", None, "local")
    content = started(definition, "cpu", weights, labels={"a": "b"})
    made = content["services"]["llamacpp"]
    assert made["volumes"] == [
        {"type": "bind", "source": "/data/$$x/model.gguf", "target": "/models/model.gguf", "read_only": True}
    ]
    assert content["volumes"] == {}
    assert "/models/model.gguf" in made["command"]
    assert "HF_TOKEN" not in made["environment"]
    assert made["healthcheck"] == {"disable": True}
    assert made["labels"] == content["networks"]["default"]["labels"] == {"a": "b"}


def test_a_vision_in_a_file_of_its_own_is_mounted_too():
    weights = Weights("/m/text.gguf", "t", "q", "00", None, "local", vision="/m/mmproj.gguf")
    content = started(configured(load_backend("llamacpp"), None, {}), "cpu", weights)
    made = content["services"]["llamacpp"]
    assert [mount["target"] for mount in made["volumes"]] == ["/models/text.gguf", "/models/mmproj.gguf"]
    assert made["command"][made["command"].index("--mmproj") + 1] == "/models/mmproj.gguf"


@pytest.mark.parametrize(
    ("place", "model", "source", "target"),
    [
        ("/m/w.gguf", "/models/w.gguf", "/m/w.gguf", "/models/w.gguf"),
        ("/m/folder", "/models/folder", "/m/folder", "/models/folder"),
        ("/m/w-00001-of-00003.gguf", "/models/w-00001-of-00003.gguf", "/m", "/models"),
        (
            "/c/hub/models--org--name/snapshots/abc",
            "/models/models--org--name/snapshots/abc",
            "/c/hub/models--org--name",
            "/models/models--org--name",
        ),
        (
            "/c/hub/models--org--Big-GGUF/snapshots/abc/Q4/Big-00001-of-00002.gguf",
            "/models/models--org--Big-GGUF/snapshots/abc/Q4/Big-00001-of-00002.gguf",
            "/c/hub/models--org--Big-GGUF",
            "/models/models--org--Big-GGUF",
        ),
    ],
)
def test_what_belongs_to_the_weights_is_mounted_with_them(place, model, source, target):
    found, mount = compose_launch._mounted(Path(place))
    assert (found, mount["source"], mount["target"]) == (model, source, target)


def test_caches_are_shared_by_all_that_fetch():
    weights = Weights("org/model", "t", "q", None, None, "hub")
    content = started(configured(load_backend("vllm"), None, {}), "cpu", weights)
    assert content["services"]["vllm"]["volumes"] == [
        "hf-cache:/root/.cache/huggingface",
        "vllm-cache:/root/.cache/vllm",
    ]
    assert content["volumes"]["hf-cache"] == {"name": "llm-servebench-hf-cache", "external": True}


def test_weights_whose_name_has_quotes_do_not_break_the_file():
    name = 'a "good\\one" é'
    for engine, file in (("triton-vllm", "models/bench/1/model.json"), ("localai", "models.yaml")):
        definition = configured(load_backend(engine), None, {})
        fill = plain_fill(definition) | {"model": name, "model_name": name}
        text = filled_files(definition, fill)[file]
        assert json.loads(re.search(r'"?model"?: (".*")', text)[1].partition(", ")[0]) == name


@pytest.mark.parametrize("name", ["dynamo", "ray-vllm"])
def test_an_image_of_a_user_of_its_own_writes_to_the_shared_cache(made, name):
    """A new volume belongs to root. Both images have homes elsewhere."""
    text = block(made[MAIN], name)
    assert 'user: "0"' in text
    assert 'HF_HOME: "/hf-cache"' in text
    assert '"hf-cache:/hf-cache"' in text


def test_options_are_written_with_the_values_of_the_run(tmp_path):
    definition = configured(load_backend("tensorrt-llm"), None, {"chunked_prefill": "false"})
    files = filled_files(definition, plain_fill(definition))
    write_files(tmp_path, files)
    assert (tmp_path / "options.yaml").read_text() == files["options.yaml"]
    assert "enable_chunked_prefill: false" in files["options.yaml"]


def test_an_engine_over_two_gpus_gets_both():
    definition = configured(load_backend("tensorrt-llm"), None, {"tensor_parallel": "2"})
    weights = Weights("org/model", "t", "q", None, None, "hub")
    made = started(definition, "cuda", weights, ["0", "1"])["services"]["tensorrt-llm"]
    assert made["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] == ["0", "1"]


def taking(*arguments):
    """A definition whose engine has these arguments."""
    table = {
        "backend": {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"},
        "server": {"ready_path": "/", "startup_timeout_s": 1},
        "engine": {"args": list(arguments)},
        "image": {"cpu": {"name": "n", "tag": "t"}},
        "compose": {"port": 80, "healthcheck": ["CMD", "true"]},
    }
    return parse_backend(table, "x.toml")


def test_a_definitions_own_dollar_sign_stays_one():
    definition = taking("$HOME", "{port}")
    assert service(definition, "cpu", plain_fill(definition), hub=False)["command"] == ["$$HOME", "80"]


def test_what_only_a_process_has_is_an_error_in_a_container():
    definition = taking("{bin}/x")
    with pytest.raises(SpecError, match="nothing to fill"):
        service(definition, "cpu", plain_fill(definition), hub=False)


def test_yaml_is_block_style_around_json():
    value = {"a": {"b": [1, "x: y"], "c": None, "d e": True}, "f": [{"g": "#", "h": ["i"]}], "j": {}}
    assert yaml_text(value) == (
        'a:\n  b: [1, "x: y"]\n  c:\n  "d e": true\nf:\n  - g: "#"\n    h: ["i"]\nj: {}\n'
    )
