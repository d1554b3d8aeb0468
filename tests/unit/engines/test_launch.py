import pytest

from harness.engines import launch
from harness.engines.launch import resolve_launch
from harness.errors import SpecError
from harness.spec.backend_refs import parse_backend_list


def resolve(entry, mode, device="auto"):
    (ref,) = parse_backend_list(entry)
    return resolve_launch(ref, mode, device)


@pytest.fixture(autouse=True)
def devices(monkeypatch, tmp_path):
    """A machine without GPUs; what the function names appears."""
    files = {device: tmp_path / device for device in ("cuda", "rocm")}
    monkeypatch.setattr(launch, "DEVICE_FILES", files)
    return lambda device: files[device].touch()


@pytest.mark.parametrize(
    ("entry", "mode", "chosen"),
    [
        ("llamacpp", "auto", "process"),
        ("llamacpp", "process", "process"),
        ("llamacpp@no-prefix-cache", "auto", "process"),
        ("llamacpp", "compose", "compose"),
        ("vllm@no-prefix-cache", "compose", "compose"),
        ("sglang", "auto", "compose"),
        ("tensorrt-llm", "auto", "compose"),  # without the GPU that it needs: see test_preflight.py
        ("tgi", "simulate", "simulate"),
        ("vllm=http://h:1", "auto", "attach"),
        ("openai=http://h:1", "attach", "attach"),
    ],
)
def test_the_choice_says_what_and_why(entry, mode, chosen):
    choice = resolve(entry, mode)
    assert choice.mode == chosen
    assert entry.split("=")[0] in choice.why


@pytest.mark.parametrize(
    ("entry", "mode", "message"),
    [
        ("truth", "compose", "no [compose]"),
        ("llamacpp=http://h:1", "compose", "given with a URL"),
        ("llamacpp", "attach", "no URL to attach to"),
        ("llamacpp=http://h:1", "process", "given with a URL"),
        ("llamacpp=http://h:1", "simulate", "given with a URL"),
        ("openai", "auto", "cannot be started here"),
        ("openai", "process", "cannot be started here"),
    ],
)
def test_contradictions_are_refused_with_a_way_out(entry, mode, message):
    with pytest.raises(SpecError) as caught:
        resolve(entry, mode)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("present", "asked", "mode", "device"),
    [
        ([], "auto", "process", ""),
        (["cuda"], "auto", "compose", "cuda"),
        (["rocm"], "auto", "compose", "rocm"),
        (["rocm", "cuda"], "auto", "compose", "cuda"),
        (["cuda"], "cpu", "process", ""),
        ([], "cuda", "compose", "cuda"),
    ],
)
def test_an_engine_goes_to_the_gpu_that_is_here(devices, present, asked, mode, device):
    for name in present:
        devices(name)
    choice = resolve("llamacpp", "auto", asked)
    assert (choice.mode, choice.device) == (mode, device)


def test_a_device_without_an_image_is_refused_with_those_there_are():
    with pytest.raises(SpecError) as caught:
        resolve("lmdeploy", "compose", "cpu")
    assert "no image for cpu" in str(caught.value)
    assert "cuda" in caught.value.hint
