"""A process on a GPU that is not there: a real process, and a library that answers as NVML does."""

import dataclasses
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from harness.engines import session
from harness.engines.start import process_launch
from harness.errors import SetupError
from harness.run.measure.watch import gpu_env
from harness.spec.backend import CudaProcess
from tests.integration.engine_fakes import fake_backend, opened

GIB = 2**30


@pytest.fixture
def nvml(monkeypatch):
    """Two GPUs. `nvml.computes` says who computes on which, as pids."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    fake = SimpleNamespace(
        NVMLError=type("NVMLError", (Exception,), {}),
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetComputeRunningProcesses=lambda index: [
            SimpleNamespace(pid=pid, usedGpuMemory=GIB) for pid in fake.computes(index)
        ],
        computes=lambda index: [],
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def engines(index):
    """The fake engines of this test, as if they computed on the second GPU."""
    found = psutil.Process().children(recursive=True)
    return [
        one.pid for one in found if index == 1 and any("fake_engine" in word for word in one.cmdline()[1:2])
    ]


def on_cuda(folder, *habits):
    definition = fake_backend(folder, *habits)
    process = definition.process
    cuda = CudaProcess(process.program, env={"EXTRA": "1"}, cuda=13, not_run="a GPU")
    return dataclasses.replace(definition, process_cuda=cuda)


def test_it_sees_its_gpu_alone_and_is_found_on_it(tmp_path, nvml):
    nvml.computes = engines
    with opened(tmp_path, on_cuda(tmp_path), device="cuda", gpus=("1",)) as engine:
        facts = engine.facts
        seen = psutil.Process(facts["pid"]).environ()
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"], seen["EXTRA"]) == (
        "1",
        "PCI_BUS_ID",
        "1",
    )
    assert facts["gpus"] == ["1"]
    assert facts["gpu_pids"] == [facts["pid"]]
    assert facts["remarks"] == []
    assert facts["launch"]["device"] == "cuda"
    assert "its packages for CUDA were not run on a GPU yet" in facts["known"]
    assert gpu_env(facts)["CUDA_VISIBLE_DEVICES"] == "1", "telemetry reads the same GPU"


def test_one_that_finds_its_device_by_itself_sees_the_asked_gpus_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with opened(tmp_path, fake_backend(tmp_path), gpus=("1",)) as engine:
        assert psutil.Process(engine.facts["pid"]).environ()["CUDA_VISIBLE_DEVICES"] == "1"
        assert gpu_env(engine.facts)["CUDA_VISIBLE_DEVICES"] == "1"


def test_one_that_finds_its_device_by_itself_sees_no_gpu_on_the_cpu(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.engines.start.launch_choice.DEVICE_FILES", {"cuda": tmp_path})
    with opened(tmp_path, fake_backend(tmp_path), device="cpu") as engine:
        assert psutil.Process(engine.facts["pid"]).environ()["CUDA_VISIBLE_DEVICES"] == "-1"


def test_an_engine_that_does_not_compute_there_is_remarked(tmp_path, nvml):
    with opened(tmp_path, on_cuda(tmp_path), device="cuda") as engine:
        assert engine.facts["gpus"] == ["0"]
        assert engine.facts["gpu_pids"] == []
        assert engine.facts["remarks"] == ["NVML sees no process of the engine on GPU 0"]


def test_a_gpu_in_use_is_refused_before_the_start(tmp_path, nvml, monkeypatch):
    monkeypatch.setattr("harness.engines.start.gpus.RELEASE_S", 0.0)
    nvml.computes = lambda index: [1]
    with (
        pytest.raises(SetupError, match="another process computes on it"),
        opened(tmp_path, on_cuda(tmp_path), device="cuda"),
    ):
        pass
    assert not (tmp_path / "engine.log").exists()


def test_the_wait_for_a_free_gpu_is_no_part_of_the_start(tmp_path, nvml, monkeypatch):
    """The driver frees the memory of the engine before it seconds later."""
    clock = SimpleNamespace(ahead_s=0.0)
    now = SimpleNamespace(monotonic=lambda: time.monotonic() + clock.ahead_s)
    for module in (process_launch, session):
        monkeypatch.setattr(module, "time", now)

    def waits(*_):
        clock.ahead_s = 1000.0
        return None, clock.ahead_s

    monkeypatch.setattr(process_launch.gpus, "await_free", waits)
    with opened(tmp_path, on_cuda(tmp_path), device="cuda", gpus=("1",)) as engine:
        phases = engine.facts["start"].values()
    assert all(phase_s < clock.ahead_s for phase_s in phases)
