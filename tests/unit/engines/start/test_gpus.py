"""Is the GPU taken? Against a library that answers as NVML does."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.engines.start import gpus
from harness.errors import SetupError


class NVMLError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch):
    """`nvml.on["0"]` lists the processes on a GPU, as (pid, bytes)."""
    on: dict[str, list[tuple[int, int | None]]] = {"0": [], "1": [], "GPU-abc": []}

    def handle(name):
        if str(name) not in on:
            raise NVMLError("Invalid Argument")
        return str(name)

    fake = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=handle,
        nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetComputeRunningProcesses=lambda name: [
            SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in on[name]
        ],
        on=on,
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


@pytest.fixture
def clock(monkeypatch):
    """Sleeping takes no time; what is done at each sleep can be set."""
    now = [0.0]
    clock = SimpleNamespace(now=now, each=lambda: None)

    def sleep(seconds):
        now[0] += seconds
        clock.each()

    monkeypatch.setattr(gpus, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return clock


def test_a_free_gpu_is_waited_for_not_at_all(nvml, clock):
    assert gpus.await_free(["0", "GPU-abc"], 0, print) == (None, 0)
    assert clock.now == [0.0]


def test_the_driver_is_given_time_to_release_memory(nvml, clock):
    nvml.on["0"] = [(os.getpid(), 2**30)]

    def leaves():
        if clock.now[0] > 5:
            nvml.on["0"] = []

    clock.each = leaves
    said = []
    assert gpus.await_free(["0"], 0, said.append) == (None, clock.now[0])
    assert clock.now[0] < gpus.RELEASE_S
    assert said[0].startswith("waiting for a free GPU")


@pytest.mark.parametrize(("wait_s", "until_s"), [(0, gpus.RELEASE_S), (90, 90)])
def test_a_taken_gpu_is_refused_with_its_owner(nvml, clock, wait_s, until_s):
    nvml.on["1"] = [(os.getpid(), 3 * 2**30), (2**22 + 1, None)]
    with pytest.raises(SetupError) as caught:
        gpus.await_free(["0", "1"], wait_s, lambda line: None)
    own = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    assert f"GPU 1: {own} (pid {os.getpid()}, 3.0 GiB)" in str(caught.value)
    assert f"GPU 1: a process (pid {2**22 + 1})" in str(caught.value)
    assert "--gpu-wait" in caught.value.hint
    assert until_s <= clock.now[0] < until_s + 2


def test_what_cannot_be_seen_is_said(nvml, clock):
    assert "Invalid Argument" in gpus.await_free(["7"], 0, print)[0]

    def broken():
        raise NVMLError("Driver Not Loaded")

    nvml.nvmlInit = broken
    assert "Driver Not Loaded" in gpus.await_free(["0"], 0, print)[0]
    assert gpus.await_free([], 0, print) == (None, 0)


def test_as_many_as_the_engine_is_spread_over(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus.chosen_gpus(2) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-abc,5")
    assert gpus.chosen_gpus(2) == ["3", "GPU-abc"]
    assert gpus.chosen_gpus(1, ("7", "8")) == ["7"]
    for hidden in ("", " ", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert gpus.chosen_gpus(2) == []
        assert gpus.chosen_gpus(1, ("7",)) == ["7"]
    in_order = {"CUDA_VISIBLE_DEVICES": "7,8", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert gpus.environment(["7", "8"]) == in_order, "CUDA counts its fastest first where nothing is said"


def test_the_engine_is_found_among_those_that_compute(nvml):
    own, other, elsewhere = os.getpid(), os.getppid(), 2**22 + 1
    nvml.on["0"], nvml.on["1"] = [(own, 1), (other, 1)], [(own, 1)]
    assert gpus.computing(["0", "1"], [own]) == ([own], None)
    nvml.on["0"] = [(other, 1)]
    found, why = gpus.computing(["0"], [own])
    assert found == []
    assert "no process of the engine" in why
    for processes in ([(elsewhere, None)], [(other, 1), (elsewhere, None)]):
        nvml.on["0"] = processes
        found, why = gpus.computing(["0"], [own])
        assert found == []
        assert "another namespace" in why
    assert "was not seen" in gpus.computing(["9"], [own])[1]
