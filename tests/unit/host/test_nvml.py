"""Facts of NVIDIA's driver, from a library that answers as NVML does."""

import sys
from threading import Event
from types import SimpleNamespace

import pynvml
import pytest

from harness.host import nvml
from harness.sampling import machine


@pytest.fixture
def library(monkeypatch):
    fake = SimpleNamespace(
        NVMLError=type("NVMLError", (Exception,), {}),
        nvmlInit=lambda: fake.open.append(True),
        nvmlShutdown=lambda: fake.open.pop(),
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda index: f"GPU {index}",
        nvmlSystemGetDriverVersion=lambda: "575.51",
        nvmlSystemGetCudaDriverVersion=lambda: 12080,
        open=[],
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_the_driver_says_what_there_is_and_which_cuda_it_knows(library):
    assert (nvml.gpu_count(), nvml.gpu_names()) == (2, ("GPU 0", "GPU 1"))
    assert (nvml.driver_version(), nvml.cuda_version()) == ("575.51", 12)
    assert not library.open


def test_the_driver_is_opened_once_where_it_is_asked_several_times(library):
    opened = []
    library.nvmlInit = lambda: library.open.append(True) or opened.append(len(library.open) == 1)
    with nvml.kept_open():
        assert not library.open, "one that hangs holds up nobody who asks it nothing"
        machine.host_facts()
        assert (nvml.gpu_count(), nvml.driver_version(), nvml.cuda_version()) == (2, "575.51", 12)
    assert sum(opened) == 1
    assert not library.open
    machine.host_facts()
    assert sum(opened) == 2, "the names of GPUs and the driver's version are two questions"
    assert not library.open


def test_a_driver_that_cannot_be_closed_has_answered(library):
    def fail():
        raise library.NVMLError("GPU is lost")

    library.nvmlShutdown = fail
    assert nvml.gpu_count() == 2
    with nvml.kept_open():
        assert nvml.gpu_count() == 2


def test_a_driver_that_hangs_keeps_back_no_result(library, monkeypatch):
    monkeypatch.setattr(nvml, "_CLOSE_S", 0.0)
    goes_on, ended = Event(), Event()
    library.nvmlShutdown = lambda: goes_on.wait() and ended.set()
    with nvml.kept_open():
        assert nvml.gpu_count() == 2
    assert not ended.is_set()
    goes_on.set()
    assert ended.wait(20)


def test_without_a_driver_nothing_is_kept_open(library):
    def fail():
        raise library.NVMLError("no driver")

    library.nvmlInit, library.nvmlShutdown = fail, None
    with nvml.kept_open():
        assert nvml.gpu_names() is None


def test_a_gpu_that_has_fallen_off_the_bus_does_not_hide_the_others(library):
    def handle(index):
        if index == 0:
            raise library.NVMLError("GPU is lost")
        return index

    library.nvmlDeviceGetHandleByIndex = handle
    assert nvml.gpu_names() == ("GPU 1",)
    assert not library.open


@pytest.mark.parametrize(
    ("call", "code", "expected"),
    [
        (
            "nvmlInit",
            pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
            "NVIDIA's driver does not answer: RM has detected an NVML/RM version mismatch. In a container:",
        ),
        ("nvmlInit", pynvml.NVML_ERROR_UNKNOWN, "NVIDIA's driver does not answer: Unknown Error"),
        ("nvmlInit", pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, None),  # a container may have CUDA without it
        ("nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_GPU_IS_LOST, "GPU 1 does not answer: GPU is lost"),
        (
            "nvmlDeviceGetHandleByIndex",
            pynvml.NVML_ERROR_RESET_REQUIRED,
            "GPU 1 does not answer: GPU requires",
        ),
        ("nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_GPU_NOT_FOUND, "GPU 1 does not answer: NVML Error"),
        ("nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_UNKNOWN, None),
        ("nvmlDeviceGetHandleByUUID", pynvml.NVML_ERROR_NOT_FOUND, None),  # CUDA takes the first digits
        (None, 0, None),
    ],
)
def test_the_driver_says_which_gpus_it_cannot_use(monkeypatch, call, code, expected):
    def answering(name):
        def answer(*_):
            if name == call:
                raise pynvml.NVMLError(code)

        return answer

    for name in ("nvmlInit", "nvmlShutdown", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID"):
        monkeypatch.setattr(pynvml, name, answering(name))
    assert (nvml.fault(["1", "GPU-7"]) or "None").startswith(expected or "None")


@pytest.mark.parametrize(
    ("visible", "named"), [("1, GPU-7", ["1", "GPU-7"]), ("0,-1,1", ["0"]), ("-1,0", []), (" ,", [])]
)
def test_minus_one_hides_all_gpus_that_follow(visible, named):
    assert nvml.named_gpus(visible) == named


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
def test_what_it_does_not_say_is_none(library, call):
    def broken():
        raise library.NVMLError("Driver Not Loaded")

    setattr(library, call, broken)
    assert (nvml.gpu_count(), nvml.gpu_names()) == (None, None)
    assert not library.open
