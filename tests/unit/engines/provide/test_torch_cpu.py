"""Where torch comes from, against a pip that is a script: what it would bring is written in a file."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from harness.engines.provide.pip import Pip
from harness.engines.provide.torch_cpu import accelerator_packages, install_cpu_torch
from harness.errors import SetupError

CPU = [{"name": "torch", "version": "2.13.0+cpu"}, {"name": "sympy", "version": "1.14"}]
CUDA = [{"name": "torch", "version": "2.13.0"}, {"name": "nvidia-cublas", "version": "13"}]

# Started some twenty times: -S and no pathlib, which take longer than the rest.
FAKE = """#!{python} -IS
import json, os, sys
os.chdir({folder!r})
arguments = sys.argv[1:]
with open("calls", "a") as calls:
    calls.write(json.dumps([os.path.basename(sys.argv[0]), *arguments]) + "\\n")
with open("offers.json") as file:
    offers = json.load(file)
named = list(arguments)
if "--requirement" in arguments:  # variables in it are filled in, as pip does
    with open(arguments[arguments.index("--requirement") + 1]) as file:
        text = file.read()
    for name, value in os.environ.items():
        text = text.replace("${{%s}}" % name, value)
    named += text.replace('"', " ").split()
place = next((word for word in named if word in offers), "default")
if offers[place] is None:
    sys.exit("ERROR: No matching distribution found for torch")
if "--report" in arguments:
    report = {{"install": [{{"metadata": entry}} for entry in offers[place]]}}
    with open(arguments[arguments.index("--report") + 1], "w") as file:
        json.dump(report, file)
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """offer(default=…, URL=…, uv=…) says what each source has (None: nothing); calls() what was run."""
    for setting in ("BENCH_TORCH_INDEX", "BENCH_TORCH_FIND_LINKS"):
        monkeypatch.delenv(setting, raising=False)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("python", "uv"):
        (tools / name).write_text(FAKE.format(python=sys.executable, folder=str(tmp_path)))
        (tools / name).chmod(stat.S_IRWXU)
    said = []

    class Machine:
        bin = tools
        pip = Pip(tools / "python", tmp_path / "log", said.append, "vllm")

        def offer(self, **offers):
            (tmp_path / "offers.json").write_text(
                json.dumps({name.replace("_", "-"): o for name, o in offers.items()})
            )

        def calls(self):
            lines = (tmp_path / "calls").read_text().splitlines()
            return [
                [word for word in json.loads(line) if word not in ("-I", "-m", "--no-input")]
                for line in lines
            ]

        def install(self):
            return install_cpu_torch(self.pip, tools, "2.13.0")

    monkeypatch.setenv("PATH", os.defpath)  # no uv there
    return Machine()


def test_pip_alone_when_what_it_finds_is_a_cpu_build(machine):
    machine.offer(default=CPU)
    assert machine.install() == "torch==2.13.0 as pip finds it: a CPU build"
    dry, real = machine.calls()
    assert "--dry-run" in dry
    assert real[:4] == ["python", "pip", "install", "torch==2.13.0"]
    assert "--dry-run" not in real


def test_a_cuda_build_is_never_installed_and_uv_is_asked(machine):
    machine.offer(default=CUDA, cpu=CPU)
    how = machine.install()
    assert how.startswith(
        "torch==2.13.0 from uv's CPU backend: pip's settings offer a GPU build (nvidia-cublas"
    )
    dry, fetch, real = machine.calls()
    assert "--dry-run" in dry
    assert fetch[:4] == ["python", "pip", "install", "uv"]
    assert real[:3] == ["uv", "pip", "install"]
    assert real[-3:] == ["torch==2.13.0", "--torch-backend", "cpu"]


def test_a_uv_on_the_path_is_used(machine, monkeypatch):
    monkeypatch.setenv("PATH", f"{machine.bin}:{os.defpath}")
    machine.offer(default=None, cpu=CPU)
    assert "pip finds none" in machine.install()
    assert [call[0] for call in machine.calls()] == ["python", "uv"]


def test_no_cpu_build_anywhere_says_what_to_set(machine):
    machine.offer(default=CUDA, cpu=None)
    with pytest.raises(SetupError) as caught:
        machine.install()
    assert "no CPU build of torch==2.13.0" in str(caught.value)
    assert "nvidia-cublas" in str(caught.value)
    assert "BENCH_TORCH_INDEX" in caught.value.hint
    assert "BENCH_TORCH_FIND_LINKS" in caught.value.hint


@pytest.mark.parametrize(
    ("setting", "flag"), [("BENCH_TORCH_INDEX", "--index-url"), ("BENCH_TORCH_FIND_LINKS", "--find-links")]
)
def test_a_setting_comes_first_and_is_checked_too(machine, monkeypatch, setting, flag):
    monkeypatch.setenv(setting, "mine")
    machine.offer(mine=CPU, default=CUDA)
    assert machine.install() == f"torch==2.13.0 from {setting}"
    assert len(machine.calls()) == 2
    for call in machine.calls():
        assert "mine" not in call  # every user of the machine can read a command line
        wanted = Path(call[call.index("--requirement") + 1]).read_text()
        assert wanted == f'{flag} "${{{setting}}}"\ntorch==2.13.0\n'
    machine.offer(mine=CUDA, default=CPU)
    with pytest.raises(SetupError, match=f"{setting} offers a GPU build"):
        machine.install()


def test_what_counts_as_a_gpu_package():
    listed = {"torch": "2.13.0", "nvidia-cudnn": "9", "cuda_bindings": "13", "triton": "3.9", "numpy": "2"}
    assert accelerator_packages(listed) == ["cuda_bindings", "nvidia-cudnn"]
    assert accelerator_packages({"torch": "2.13.0+cu126"}) == ["torch"]
    assert accelerator_packages({"torch": "2.13.0+cpu"}) == []
