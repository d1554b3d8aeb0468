"""What every shipped system declares of itself, and what of it is told."""

import json
import re
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.engines.known import known
from harness.engines.provide.models import local_model
from harness.engines.simulate import simulated
from harness.engines.speak.dialect import Chat, render_body
from harness.engines.start.command import write_files
from harness.engines.start.launch_choice import LaunchChoice, resolve_launch, track_of
from harness.errors import ExitCode, SpecError
from harness.host import paths
from harness.mockserver.ask import parse_ask
from harness.mockserver.dialects import DIALECTS
from harness.probe.shapes import TRIALS
from harness.spec.backend_refs import load_backend, parse_backend_list
from harness.spec.models import Model, Track
from harness.spec.scenario import Request

TESTS = Path(__file__).parents[1]
SYSTEMS = sorted(set(paths.definitions("backends")) - {"models", "truth", "openai"})


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_says_what_it_is_where_that_was_read_and_how_it_comes_to_run(name):
    definition = load_backend(name)
    assert definition.backend.bias, "its own known bias"
    assert definition.facts.version
    assert definition.facts.source
    assert definition.process or definition.compose or definition.attach
    named = re.compile(rf'"{re.escape(name)}["@=]')
    ran = any(named.search(path.read_text()) for path in (TESTS / "engines").rglob("test_*.py"))
    assert bool(definition.facts.not_run) is not ran, "run by the engine tests, or what that needs"


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_simulator_hears_what_the_definition_says(name):
    """The exact length, and each shape in the words that the definition has for it."""
    (ref,) = parse_backend_list(name)
    definition = ref.definition
    simulated(ref, ())  # there is a dialect for it
    if not definition.dialect.chat_path:
        return  # it speaks no chat
    spoken = DIALECTS[definition.backend.simulator or name]

    def heard(**asked):
        messages = [{"role": "user", "content": "?"}]
        body = render_body(definition, "bench", Chat(messages, 7, **asked), Request(temperature=0.5))
        return parse_ask(body, spoken, chat=True, chars_per_token=4)

    plain = heard()
    assert (plain.max_tokens, plain.words) == (7, ())
    assert (plain.ignore_eos or plain.min_tokens == 7) is bool(definition.dialect.exact_output)
    for shape, trial in TRIALS.items():
        if getattr(definition.dialect.structured, shape):
            assert trial.fits("".join(heard(constraint=trial.constraint).words)), shape


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_cannot_be_started_here_says_how_a_person_starts_it(name):
    (ref,) = parse_backend_list(name)
    if ref.definition.process or ref.definition.compose:
        return
    with pytest.raises(SpecError) as caught:
        resolve_launch(ref, "auto")
    assert ref.definition.attach.start[0] in caught.value.hint
    assert f"{name}=http://HOST:PORT" in caught.value.hint


def test_what_weighs_most_is_told_first():
    assert known(load_backend("sglang-router"))[0].startswith("a front")
    assert known(load_backend("mii"))[0].startswith("dormant")
    assert known(load_backend("vllm")) == list(load_backend("vllm").backend.bias)
    assert known(load_backend("truth")) == []
    library = load_backend("openvino-genai")
    assert known(library)[0].startswith("a library behind bench's shim: what that adds")
    assert known(library, 41.6)[0] == "a library behind bench's shim, +42 µs/token"


@pytest.mark.parametrize(("mode", "told"), [("process", True), ("compose", False), ("attach", False)])
def test_what_the_cpu_build_of_an_engine_lacks_is_told_of_that_build_alone(mode, told):
    sglang = load_backend("sglang")
    lines = known(sglang, launch=LaunchChoice(mode, "", "cpu"))
    assert (lines[0] == sglang.process.caveat) is (sglang.process.caveat in lines) is told


@pytest.fixture
def bench(capsys):
    """What the command prints."""

    def printed(*arguments):
        assert main(arguments) == ExitCode.OK
        return capsys.readouterr().out

    return printed


def test_it_is_told_before_anything_is_started(bench):
    arguments = (
        "run",
        "--scenario",
        "fixed-length",
        "--backends",
        "mii",
        "--launch",
        "simulate",
        "--dry-run",
    )
    lines, shown = known(load_backend("mii")), " ".join(bench(*arguments, "-v").split())
    assert all(f"known of it: {line}" in shown for line in lines)
    assert json.loads(bench(*arguments, "--json"))["backends"]["mii"]["known"] == lines


def test_the_list_says_which_projects_are_no_longer_active(bench):
    rows = {row["name"]: row["about"] for row in json.loads(bench("list", "backends", "--json"))["backends"]}
    assert rows["mii"].endswith("(dormant)")
    assert rows["vllm"] == "vLLM"


def track(entry, model):
    (ref,) = parse_backend_list(entry)
    return track_of(ref, LaunchChoice("compose", "", "cuda"), "m", model)


def test_an_engine_that_fetches_nothing_takes_no_name_of_the_hub():
    hub = Track("hf", "bf16", repo="a/b")
    assert track("vllm", Model("M", "MIT", tracks={"hub": hub})) == "hub"
    with pytest.raises(SpecError, match="no hf track on this machine") as caught:
        track("tabbyapi", Model("M", "MIT", tracks={"hub": hub}))
    assert "--model PATH" in caught.value.hint
    both = Model("M", "MIT", tracks={"hub": hub, "here": Track("hf", "bf16", path="/m")})
    assert track("tabbyapi", both) == "here"


def test_weights_that_bench_would_convert_are_not_for_a_container():
    tracks = {"f32": Track("hf", "f32", path="/m"), "f16": Track("gguf", "F16", convert_from="f32")}
    with pytest.raises(SpecError, match="no gguf track that is ready to use, and bench converts weights for"):
        track("llamacpp", Model("M", "MIT", tracks=tracks))
    hub = {"hub": Track("hf", "bf16", repo="a/b")}
    with pytest.raises(SpecError, match=r"no hf track on this machine\n"):
        track("tabbyapi", Model("M", "MIT", tracks=hub))


@pytest.mark.parametrize(
    ("files", "weights", "quantisation"),
    [
        ({"config.json": '{"dtype": "bfloat16"}'}, "hf", "bfloat16"),
        (
            {"config.json": '{"quantization_config": {"quant_method": "exl3", "bits": 4.5}}'},
            "hf",
            "EXL3, 4.5 bits",
        ),
        ({"config.json": '{"quantization_config": {"quant_method": "fp8"}}'}, "hf", "FP8"),
        ({"openvino_model.xml": "", "config.json": "{}"}, "openvino", "OpenVINO IR"),
        ({"model.bin": "", "config.json": "{}"}, "ctranslate2", "CTranslate2"),
    ],
)
def test_a_folder_of_weights_is_known_by_what_lies_in_it(tmp_path, files, weights, quantisation):
    write_files(tmp_path, files)
    _, model = local_model(str(tmp_path))
    (found,) = model.tracks.values()
    assert (found.weights, found.quantisation, found.path) == (weights, quantisation, str(tmp_path))


def test_lm_studio_is_loaded_without_a_time_to_live():
    """Its smallest one is a second: with 0, `lms load` loads nothing."""
    assert not [line for line in load_backend("lmstudio").attach.start if "--ttl" in line]


def test_a_file_of_an_engine_may_lie_in_folders_of_its_own(tmp_path):
    write_files(tmp_path, {"a/b/c.json": "{}", "d": "e"})
    assert (tmp_path / "a/b/c.json").read_text() == "{}"
    assert (tmp_path / "d").read_text() == "e"
