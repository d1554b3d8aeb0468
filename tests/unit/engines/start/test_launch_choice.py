import pytest

from harness.engines.start import launch_choice
from harness.engines.start.launch_choice import as_launched, resolve_launch
from harness.errors import SpecError
from harness.spec.backend_refs import parse_backend_list
from harness.spec.dialect import Structured


def resolve(entry, mode, device="auto"):
    (ref,) = parse_backend_list(entry)
    return resolve_launch(ref, mode, device)


@pytest.fixture(autouse=True)
def devices(monkeypatch, tmp_path):
    """A machine without GPUs; what the function names appears."""
    files = {device: tmp_path / device for device in ("cuda", "rocm")}
    monkeypatch.setattr(launch_choice, "DEVICE_FILES", files)
    monkeypatch.setattr(launch_choice, "has_docker", lambda: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return lambda device: files[device].touch()


@pytest.mark.parametrize(("gpus", "found"), [(1, True), (0, False), (None, False)])
def test_in_wsl_the_driver_says_whether_a_gpu_of_windows_is_nvidia_s(
    devices, monkeypatch, tmp_path, gpus, found
):
    """There is no /dev/nvidiactl, and /dev/dxg stands for a GPU of any vendor."""
    monkeypatch.setattr(launch_choice, "_WINDOWS_GPU", tmp_path)
    monkeypatch.setattr(launch_choice, "gpu_count", lambda: gpus)
    assert launch_choice.has_device("cuda") is found
    assert not launch_choice.has_device("rocm")
    monkeypatch.setattr(launch_choice, "_WINDOWS_GPU", tmp_path / "none")
    assert not launch_choice.has_device("cuda")
    devices("cuda")
    assert launch_choice.has_device("cuda")


@pytest.mark.parametrize(
    ("entry", "mode", "chosen"),
    [
        ("llamacpp", "auto", "process"),
        ("llamacpp", "process", "process"),
        ("llamacpp@no-prefix-cache", "auto", "process"),
        ("llamacpp", "compose", "compose"),
        ("vllm@no-prefix-cache", "compose", "compose"),
        ("sglang", "auto", "process"),
        ("tgi", "auto", "compose"),
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
        ("lmstudio", "compose", "no [compose]"),
        ("lmstudio", "process", "no [process]"),
        ("llamacpp=http://h:1", "compose", "given with a URL"),
        ("llamacpp", "attach", "no URL to attach to"),
        ("llamacpp=http://h:1", "process", "given with a URL"),
        ("llamacpp=http://h:1", "simulate", "given with a URL"),
        ("openai", "auto", "cannot be started here"),
        ("openai", "process", "cannot be started here"),
        ("tgi", "process", "cannot be started here"),
    ],
)
def test_contradictions_are_refused_with_a_way_out(entry, mode, message):
    with pytest.raises(SpecError) as caught:
        resolve(entry, mode)
    assert message in str(caught.value)
    assert caught.value.hint
    for other in ("process", "compose"):  # what a hint names is not refused in its turn
        if f"--launch {other}" in caught.value.hint and "=" not in entry:
            assert resolve(entry, other).mode == other


def test_what_is_done_by_hand_is_run_and_need_not_start_a_server():
    """A hosted API runs already: its commands set a key and probe it."""
    with pytest.raises(SpecError) as caught:
        resolve("hosted", "auto")
    assert caught.value.hint.startswith("run `export BENCH_API_KEY=…; bench probe hosted=https://HOST/v1 ")
    assert caught.value.hint.endswith("`, then attach to it with hosted=http://HOST:PORT")


def test_a_hint_to_attach_names_no_version():
    with pytest.raises(SpecError) as caught:
        resolve("llamacpp==1.2", "attach")
    assert caught.value.hint == "give the backend as llamacpp=http://HOST:PORT"


@pytest.mark.parametrize(
    ("present", "asked", "mode", "device"),
    [
        ([], "auto", "process", ""),
        (["cuda"], "auto", "compose", "cuda"),
        (["rocm"], "auto", "compose", "rocm"),
        (["rocm", "cuda"], "auto", "compose", "cuda"),
        (["cuda"], "cpu", "process", "cpu"),
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


@pytest.mark.parametrize(
    ("entry", "present", "asked", "mode", "device"),
    [
        ("sglang", ["cuda"], "auto", "process", "cuda"),
        ("vllm", ["cuda"], "auto", "process", "cuda"),
        ("vllm", ["cuda"], "cpu", "process", "cpu"),
        ("vllm", [], "auto", "process", ""),
        ("vllm", ["rocm"], "auto", "compose", "rocm"),  # its packages for it are in the image alone
        ("llamacpp", ["cuda"], "auto", "process", "cuda"),  # the llama-server on PATH
        ("sglang", [], "cuda", "process", "cuda"),
        ("sglang", [], "auto", "process", ""),
        ("tgi", [], "auto", "compose", "cpu"),
    ],
)
def test_without_docker_a_gpu_is_reached_by_packages_for_it(
    devices, monkeypatch, entry, present, asked, mode, device
):
    monkeypatch.setattr(launch_choice, "has_docker", lambda: False)
    for name in present:
        devices(name)
    choice = resolve(entry, "auto", asked)
    assert (choice.mode, choice.device) == (mode, device)


@pytest.mark.parametrize(
    ("entry", "present", "asked", "device"),
    [
        ("vllm", ["cuda"], "auto", "cuda"),
        ("vllm", ["cuda"], "cpu", "cpu"),  # all on the CPU see the same GPUs: none
        ("vllm", [], "auto", ""),
        ("vllm", [], "cuda", "cuda"),
        ("lmdeploy", [], "auto", "cuda"),
        ("ollama", ["cuda"], "cuda", ""),  # one program, which finds the GPU itself
        ("ollama", ["cuda"], "cpu", "cpu"),  # which is hidden from it
        ("ollama", [], "cpu", ""),
    ],
)
def test_a_process_takes_the_packages_of_its_device(devices, entry, present, asked, device):
    for name in present:
        devices(name)
    (ref,) = parse_backend_list(entry)
    choice = resolve_launch(ref, "process", asked)
    assert (choice.mode, choice.device) == ("process", device)
    started = as_launched(ref, choice).definition
    on_cuda = device == "cuda"
    assert started.process == (ref.definition.process_cuda if on_cuda else ref.definition.process)
    assert ("on cuda" in choice.why) is on_cuda


@pytest.mark.parametrize(("mode", "device"), [("process", "cpu"), ("compose", "cuda")])
def test_a_process_that_refuses_structured_output_is_asked_for_none(mode, device):
    """MAX computes it on GPUs alone: on a CPU each request ended with 400, and the probe with 1."""
    (ref,) = parse_backend_list("modular-max")
    declared = ref.definition.dialect.structured
    asked = as_launched(ref, resolve_launch(ref, mode, device)).definition.dialect.structured
    assert declared.json_schema
    assert asked == (Structured() if mode == "process" else declared)


@pytest.mark.parametrize(
    ("entry", "asked", "has"), [("lmdeploy", "cpu", "cuda"), ("vllm", "rocm", "cpu, cuda")]
)
def test_a_device_without_packages_is_refused_with_those_there_are(entry, asked, has):
    with pytest.raises(SpecError, match=f"no packages for {asked}") as caught:
        resolve(entry, "process", asked)
    assert caught.value.hint.endswith(has)


def test_docker_is_there_with_a_socket_a_program_or_a_setting(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(launch_choice, "_DOCKER_SOCKET", tmp_path / "docker.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert not launch_choice.has_docker()
    (tmp_path / "docker.sock").touch()
    assert launch_choice.has_docker()
    (tmp_path / "docker.sock").unlink()
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere.sock")
    assert launch_choice.has_docker()


def test_a_variant_that_a_cpu_cannot_start_is_refused_with_its_reason_and_those_that_it_can(devices):
    with pytest.raises(SpecError, match="spec-ngram' cannot be started on a CPU: drafts are") as caught:
        resolve("sglang@spec-ngram", "auto")
    assert caught.value.hint.endswith("no-prefix-cache, no-chunked-prefill, longest-prefix-first, llguidance")
    assert resolve("sglang@llguidance", "auto").mode == "process"
    assert resolve("sglang@spec-ngram", "compose", "cpu").mode == "compose", "its image has its kernels"
    devices("cuda")
    assert resolve("sglang@spec-ngram", "process").device == "cuda"


@pytest.mark.parametrize(
    ("mode", "docker", "gpus", "chosen"),
    [
        ("auto", True, (), ("process", "")),
        ("auto", False, (), ("process", "")),
        ("process", False, (), ("process", "")),
        ("compose", True, (), ("compose", "cpu")),
        ("auto", True, ("0",), ("compose", "cuda")),
        ("auto", False, ("0",), ("process", "cuda")),
    ],
)
def test_gpus_that_are_all_hidden_are_not_there_unless_some_are_asked_for(
    devices, monkeypatch, mode, docker, gpus, chosen
):
    devices("cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(launch_choice, "has_docker", lambda: docker)
    choice = resolve_launch(parse_backend_list("vllm")[0], mode, "auto", gpus)
    assert (choice.mode, choice.device) == chosen
