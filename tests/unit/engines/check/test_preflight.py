"""What is missing for a run is told in one list, before anything is downloaded, started or created."""

import gc
import json
import re
import socket
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from harness.cli.main import main
from harness.engines.check.available import Machine
from harness.engines.check.preflight import Lack, lacks, require
from harness.engines.provide import interpreters
from harness.engines.start.launch_choice import as_launched, resolve_launch
from harness.engines.start.request import Planned
from harness.errors import ExitCode, SetupError
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import Model, Track, choose_model

HUB = Model("A model", "its own", tracks={"bf16": Track("hf", "bf16", repo="them/model", gated=True)})


class Complete(Machine):
    """Has everything; what a test takes away is missing."""

    environment = MappingProxyType({})
    cache = Path("/cache")

    def __init__(self, **missing):
        super().__init__()
        self.missing = missing

    def _refuse(self, what):
        if what in self.missing:
            raise SetupError(self.missing[what], hint=f"get {what}")

    def check_compose(self):
        self._refuse("compose")

    def check_docker(self):
        self._refuse("docker")

    def check_image(self, definition, device):
        self._refuse(f"image {definition.name} {device}")

    def has_device(self, device):
        return device not in self.missing

    def gpu_count(self):
        return self.missing.get("gpus", 8)

    def cuda_version(self):
        return self.missing.get("driver", 13)

    def gpu_fault(self, gpus):
        return self.missing.get("fault")

    def gpu_memory_bytes(self, gpus):
        return self.missing["gpu memory"] * len(gpus) if "gpu memory" in self.missing else None

    def folder_bytes(self, path, pattern):
        return {("/big", "model*.safetensors"): 20 << 30}[path, pattern]

    def check_gpus_free(self, gpus):
        self._refuse("free gpu")

    def check_port(self, port):
        self._refuse(f"port {port}")

    def check_server(self, ref, url):
        self._refuse(url)

    def has_program(self, name):
        return name not in self.missing

    def is_installed(self, definition):
        return f"environment {definition.name}" not in self.missing

    def has_file(self, path):
        return path not in self.missing

    def cache_free_bytes(self):
        return self.missing.get("free", 10**15)


@pytest.fixture(autouse=True)
def no_devices(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "harness.engines.start.launch_choice.DEVICE_FILES", {d: tmp_path / d for d in ("cuda", "rocm")}
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


FEWER = {"fewer": "--hf-overrides '{\"num_hidden_layers\": 4}'"}


def planned(backends, mode="auto", device="auto", model=None, **values):
    name, known = choose_model(None)
    return {
        ref.label: Planned(as_launched(ref, choice), choice, name, model or known, values)
        for ref in parse_backend_list(backends, own=FEWER if "@fewer" in backends else {})
        for choice in [resolve_launch(ref, mode, device)]
    }


def told(plan, **missing):
    return [str(lack) for lack in lacks(plan, Complete(**missing))]


@pytest.mark.parametrize(
    ("backends", "mode", "device"),
    [
        ("vllm,llamacpp,ollama,transformers,truth", "auto", "auto"),
        ("vllm,sglang,llamacpp", "compose", "cpu"),
        ("vllm,sglang,tensorrt-llm", "compose", "cuda"),
        ("vllm,sglang", "compose", "rocm"),
        ("openai=http://h:1,vllm=http://h:2", "auto", "auto"),
    ],
)
def test_nothing_is_missing_where_all_is_there(backends, mode, device):
    assert told(planned(backends, mode, device)) == []


def test_what_several_lack_is_one_line_and_every_backend_is_asked():
    plan = planned("vllm,tgi,tensorrt-llm,ollama,openai=http://h:1")
    missing = {"docker": "no daemon", "cuda": True, "ollama": True, "http://h:1": "no answer"}
    assert told(plan, **missing) == [
        "tgi, tensorrt-llm: no daemon → get docker",
        "tensorrt-llm: needs an NVIDIA GPU (cuda), and this machine has none → run bench where there is one, "
        "or attach to it there with tensorrt-llm=http://HOST:PORT",
        "ollama: the program ollama is not installed → install it from https://github.com/ollama/ollama, "
        "or attach with ollama=URL",
        "openai: no answer → get http://h:1",
    ]


def test_a_backend_measured_against_itself_is_told_by_both_labels():
    plan = dict.fromkeys(("ollama#a", "ollama#b"), planned("ollama")["ollama"])
    (line,) = told(plan, ollama=True)
    assert line.startswith("ollama#a, ollama#b: the program")


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ({"compose": "no compose"}, "sglang: no compose → get compose"),
        ({"docker": "no daemon"}, "sglang: no daemon → get docker"),
        ({"image sglang cuda": "denied"}, "sglang: denied → get image sglang cuda"),
        ({"docker": "no daemon", "image sglang cuda": "not asked"}, "sglang: no daemon → get docker"),
        ({"free gpu": "python computes on it"}, "sglang: python computes on it → get free gpu"),
        ({"port 8123": "taken"}, "sglang: taken → get port 8123"),
    ],
)
def test_a_container_needs_docker_its_image_its_gpu_and_its_port(missing, line):
    assert told(planned("sglang", "compose", "cuda", port="8123"), **missing) == [line]


@pytest.mark.parametrize(
    ("visible", "there", "said"),
    [
        (None, 1, "needs 2 GPUs (0, 1): this machine has 1"),
        ("3", 8, "needs 2 GPUs (3): 1 to choose from"),
        ("", 8, "needs 2 GPUs: 0 to choose from → change --gpus or CUDA_VISIBLE_DEVICES, or use"),
        ("0,9", 8, "needs 2 GPUs (0, 9): this machine has 8"),
        ("GPU-a,GPU-b", 8, None),
        ("2,3", 8, None),
        (None, None, None),  # the driver does not say: the start will
    ],
)
def test_as_many_gpus_are_needed_as_it_is_told_to_use(monkeypatch, visible, there, said):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    lines = told(planned("sglang", "compose", "cuda", tensor_parallel="2"), gpus=there)
    assert [said in line for line in lines] == ([True] if said else [])


def test_a_single_gpu_that_is_not_there_is_no_reason_for_fewer(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "9")
    (line,) = told(planned("sglang", "compose", "cuda"), gpus=8)
    assert line == "sglang: needs 1 GPU (9): this machine has 8 → change --gpus or CUDA_VISIBLE_DEVICES"


def test_packages_for_cuda_need_a_gpu_a_driver_and_no_docker():
    plan = planned("vllm,lmdeploy", "process", "cuda")
    assert told(plan, docker="no daemon", compose="no compose") == []
    assert told(plan, driver=None) == []  # it cannot be told: the start will
    assert [line.partition(" →")[0] for line in told(plan, driver=12)] == [
        f"{name}: its packages are built for CUDA 13, and the driver here knows CUDA 12"
        for name in ("vllm", "lmdeploy")
    ]
    (line,) = told(plan, **{"free gpu": "python computes on it"})
    assert line == "vllm, lmdeploy: python computes on it → get free gpu"
    (line,) = told(plan, fault="NVIDIA's driver does not answer: Unknown Error", **{"free gpu": "not asked"})
    assert line.startswith("vllm, lmdeploy: NVIDIA's driver does not answer: Unknown Error → reload")
    lines = told(plan, cuda=True)
    assert [line.partition(" (cuda)")[0] for line in lines] == [
        "vllm: needs an NVIDIA GPU",
        "lmdeploy: needs an NVIDIA GPU",
    ]


def test_an_environment_needs_venv_unless_it_is_there(monkeypatch):
    monkeypatch.setattr(interpreters, "find_spec", lambda name: None if name == "ensurepip" else name)
    monkeypatch.setattr(interpreters, "find_uv", lambda: None)
    (line,) = told(planned("llamacpp"), **{"environment llamacpp": True})
    assert "no venv with pip → install the package python3-venv" in line
    assert told(planned("llamacpp")) == []
    monkeypatch.setattr(interpreters, "find_uv", lambda: "/bin/uv")
    assert told(planned("llamacpp"), **{"environment llamacpp": True}) == [], "uv makes one without it"


def test_the_disk_must_hold_what_is_to_be_installed_for_all_of_them():
    plan = planned("vllm,vllm@no-prefix-cache,llamacpp,transformers")
    missing = {f"environment {name}": True for name in ("vllm", "llamacpp")}
    (line,) = told(plan, free=3_837_999_999, **missing)
    assert line.startswith(
        "vllm@no-prefix-cache, llamacpp: about 3,838 MB are to be installed in /cache, where 3,837 MB"
    )
    assert told(plan, free=3_838_000_000, **missing) == []
    cuda = planned("transformers", "process", "cuda")
    (line,) = told(cuda, free=1_000_000, **{"environment transformers": True})
    assert re.search(r"^transformers: more than the 2,7\d\d MB of the downloads are to be installed in", line)
    (line,) = told(plan, free=None, **missing)
    assert "the cache folder /cache cannot be written" in line
    assert told(plan, free=None) == []


BF16 = Model("A model", "its own", None, 7616, tracks={"bf16": Track("hf", "bf16", repo="them/model")})
ON_DISK, WIDE, UNNAMED = (
    Model("A model", "its own", tracks={"local": Track("hf", kind, path="/big")})
    for kind in ("bfloat16", "float32", "unknown")
)
AWQ = Model("A model", "its own", None, 7616, tracks={"awq": Track("hf", "AWQ", repo="them/model")})


@pytest.mark.parametrize(
    ("backends", "model", "gib", "gpus", "weights_gib"),
    [
        ("vllm,sglang", BF16, 14, 1, "14.2"),
        ("vllm", BF16, 15, 1, None),
        ("vllm", BF16, 8, 2, None),  # together they hold it
        ("vllm", BF16, None, 1, None),  # memory of the host
        ("vllm", ON_DISK, 12, 1, "20.0"),
        ("vllm", ON_DISK, 20, 1, None),
        ("vllm", WIDE, 12, 1, None),  # the engine loads it in bfloat16
        ("vllm", UNNAMED, 12, 1, None),
        ("vllm@fewer", BF16, 8, 1, None),
        ("vllm", AWQ, 4, 1, None),  # what it takes is not known
        ("transformers", BF16, 8, 1, None),  # it may keep a part on the CPU
    ],
)
def test_weights_that_no_gpu_holds_are_found_before_they_are_downloaded(
    backends, model, gib, gpus, weights_gib
):
    spread = {"tensor_parallel": gpus} if gpus > 1 else {}
    plan = planned(backends, "process", "cuda", model=model, **spread)
    lines = told(plan, **({} if gib is None else {"gpu memory": gib << 30}))
    if weights_gib is None:
        assert lines == []
    else:
        (line,) = lines
        name = plan["vllm"].model_name
        says = f"{', '.join(plan)}: the weights of {name} take {weights_gib} GiB, and GPU 0 has {gib}.0 GiB →"
        assert line.startswith(says)


@pytest.mark.parametrize(
    ("args", "fits"),
    [(("--cpu-offload-gb", "8"), True), (("--quantization", "fp8"), True), (("--seed", "8"), False)],
)
def test_weights_that_an_argument_keeps_elsewhere_or_makes_smaller_may_fit(args, fits):
    plan = planned("vllm", "process", "cuda", BF16)
    definition = plan["vllm"].ref.definition
    definition = replace(definition, engine=replace(definition.engine, args=(*definition.engine.args, *args)))
    plan["vllm"] = replace(plan["vllm"], ref=replace(plan["vllm"].ref, definition=definition))
    assert (told(plan, **{"gpu memory": 8 << 30}) == []) == fits


def test_too_few_gpus_are_the_only_thing_said_of_them(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (line,) = told(planned("vllm", "process", "cuda", BF16, tensor_parallel=2), **{"gpu memory": 8 << 30})
    assert "needs 2 GPUs (0): 1 to choose from" in line


def test_a_folder_is_as_large_as_the_weights_that_are_there(tmp_path):
    (tmp_path / "model-1.safetensors").write_bytes(b"12345")
    (tmp_path / "model-2.safetensors").symlink_to(tmp_path / "gone")  # of a cache that was cleared
    (tmp_path / "consolidated.safetensors").write_bytes(b"12345")
    assert Machine().folder_bytes(str(tmp_path), "model*.safetensors") == 5


def test_gated_weights_need_a_token():
    plan = planned("sglang", "compose", "cpu", model=HUB)
    (line,) = told(plan)
    assert "them/model needs an accepted licence and a token, and HF_TOKEN is not set" in line
    machine = Complete()
    machine.environment = {"HF_TOKEN": "hf_x"}
    assert lacks(plan, machine) == []


def test_weights_on_this_machine_must_be_where_they_are_said_to_be():
    tracks = {
        "q4": Track("gguf", "Q4_1", path="/gone.gguf"),
        "q8": Track("gguf", "Q8_0", convert_from="q4", convert_to="Q8_0"),
    }
    model = Model("A model", "its own", tracks=tracks)
    (line,) = told(planned("llamacpp", model=model), **{"/gone.gguf": True})
    assert "are not at /gone.gguf" in line
    made = Model("A model", "its own", tracks={"q8": tracks["q8"], "q4": tracks["q4"]})
    assert told(planned("llamacpp", model=made)) == []


def test_the_error_lists_everything_and_says_that_nothing_was_done():
    with pytest.raises(SetupError) as caught:
        require(planned("tgi,ollama"), Complete(docker="no daemon", ollama=True))
    first, *listed = str(caught.value).splitlines()
    assert first == "what the backends need is missing:"  # a server elsewhere is no lack of this machine
    assert listed == [
        f"  {lack}" for lack in lacks(planned("tgi,ollama"), Complete(docker="no daemon", ollama=True))
    ]
    assert "nothing was downloaded or started" in caught.value.hint


@pytest.mark.parametrize(
    ("backends", "refused"),
    [
        ("openai=http://h:1,vllm=http://h:2", False),
        ("vllm=http://h:2,openai=http://h:1", False),
        ("openai=http://h:1", True),  # nothing would be measured
        ("openai=http://h:1,vllm=http://h:2,tgi", True),  # that would be downloaded first
    ],
)
def test_a_server_that_is_down_keeps_others_from_being_measured_unless_they_are_to_be(backends, refused):
    machine = Complete(**{"http://h:1": "no answer", "docker": "no daemon"})
    with pytest.raises(SetupError):
        require(planned(backends), machine)
    with pytest.raises(SetupError) if refused else nullcontext():
        require(planned(backends), machine, anyway=True)


@pytest.mark.parametrize(
    ("backends", "others"), [("tgi", False), ("tgi,tgi@spec-ngram", False), ("tgi,ollama", True)]
)
def test_backends_are_to_be_left_out_only_where_others_remain(backends, others):
    with pytest.raises(SetupError) as caught:
        require(planned(backends), Complete(docker="no daemon"))
    assert ("leave those backends out of --backends" in caught.value.hint) == others


def test_a_server_that_is_down_is_measured_without_by_a_flag_that_resume_has_not():
    machine = Complete(**{"http://h:1": "no answer"})
    for resumed, ways in (
        (False, ", or leave those backends out of --backends, or measure the others with --anyway"),
        (True, ""),
    ):
        with pytest.raises(SetupError) as caught:
            require(planned("openai=http://h:1,vllm=http://h:2"), machine, resumed=resumed)
        assert caught.value.hint == f"nothing was downloaded or started; supply it{ways}"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without Docker, programs or a filled cache; returns where a run would write."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    gc.collect()  # the sockets of Docker's library, under the filter of the test they belong to


# Docker's library does not close the socket with which it found no daemon.
leaks_sockets = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

RUN = ["run", "--scenario", "fixed-length", "--backends", "vllm,tgi,tensorrt-llm,ollama"]


@leaks_sockets
def test_a_run_that_cannot_be_is_refused_before_its_first_download(bare, capsys):
    assert main(RUN) == ExitCode.SETUP
    said = capsys.readouterr().err
    assert said.count("error: ") == 1
    for line in (
        "  tgi, tensorrt-llm: neither `docker compose` nor `docker-compose` is installed → install",
        "  tgi, tensorrt-llm: no Docker daemon answers: No such file or directory → start it",
        "  tensorrt-llm: needs an NVIDIA GPU",
        "  ollama: the program ollama is not installed → install it",
    ):
        assert line in said
    assert list(bare.iterdir()) == []


@leaks_sockets
def test_a_dry_run_warns_of_the_same(bare, capsys):
    assert main([*RUN, "--dry-run"]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert main([*RUN, "--dry-run", "--json"]) == ExitCode.OK
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert all(f"warning: {Lack(tuple(m['labels']), m['what'], m['then'])}" in shown for m in missing)
    assert shown.count("warning: ") == len(missing) == 4
    assert list(bare.iterdir()) == []


@leaks_sockets
@pytest.mark.parametrize("command", ["down", "logs"])
def test_a_command_without_a_launch_is_sent_to_those_with_one(bare, capsys, command):
    assert main([command, "vllm"]) == ExitCode.SETUP
    hint = capsys.readouterr().err.splitlines()[-1]
    assert hint.endswith("`bench run` and `bench up` need none with --launch process")


@pytest.mark.parametrize("command", [["up", "lmdeploy", "--launch", "process"], ["probe", "ollama"]])
def test_a_single_engine_is_checked_as_well(bare, command, capsys):
    assert main(command) in (ExitCode.USAGE, ExitCode.SETUP)
    assert list(bare.iterdir()) == []


def test_a_taken_port_and_a_silent_server_are_seen(bare, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        entry = f"ollama,openai=http://127.0.0.1:{free_port()}"
        assert main([*RUN[:-1], entry, "--engine-set", f"port={port}"]) == ExitCode.SETUP
    said = capsys.readouterr().err
    assert f"  ollama: port {port} is taken" in said
    assert "  openai: http://127.0.0.1:" in said


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
