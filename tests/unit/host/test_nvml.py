"""Facts of NVIDIA's driver, from a library that answers as NVML does."""

import sys
from types import SimpleNamespace

import pytest

from harness.host import nvml


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


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
def test_what_it_does_not_say_is_none(library, call):
    def broken():
        raise library.NVMLError("Driver Not Loaded")

    setattr(library, call, broken)
    assert (nvml.gpu_count(), nvml.gpu_names()) == (None, None)
    assert not library.open
