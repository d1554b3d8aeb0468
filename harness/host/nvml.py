"""Questions to the library of NVIDIA's driver, which is open for one at a time."""

from collections.abc import Callable
from itertools import takewhile
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def named_gpus(visible: str) -> list[str]:
    """The indices and UUIDs in a value of CUDA_VISIBLE_DEVICES or its like; -1 hides all that follow."""
    names = (name.strip() for name in visible.split(","))
    return list(takewhile("-1".__ne__, filter(None, names)))


def gpu_count() -> int | None:
    """NVIDIA GPUs of this machine; None where the driver does not say."""
    return _known(lambda nvml: int(nvml.nvmlDeviceGetCount()))


def gpu_names() -> tuple[str, ...] | None:
    """Names as NVML has them; None without a driver."""

    def read(nvml: ModuleType) -> tuple[str, ...]:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return tuple(str(nvml.nvmlDeviceGetName(handle)) for handle in handles)

    return _known(read)


def driver_version() -> str | None:
    return _known(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def cuda_version() -> int | None:
    """Major version of CUDA that the driver knows; None where it does not say."""
    return _known(lambda nvml: int(nvml.nvmlSystemGetCudaDriverVersion()) // 1000)


def ask(question: Callable[[ModuleType], T]) -> T:
    """Gives `pynvml` to the question. Raises its NVMLError, also where there is no driver."""
    import pynvml

    pynvml.nvmlInit()
    try:
        return question(pynvml)
    finally:
        pynvml.nvmlShutdown()


def _known(question: Callable[[ModuleType], T]) -> T | None:
    import pynvml

    try:
        return ask(question)
    except pynvml.NVMLError:
        return None
