"""Questions to the library of NVIDIA's driver, which is open for one at a time, or for a whole run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from threading import Thread
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")
_CLOSE_S = 5.0
_keepers: "list[_Keeper]" = []  # the first opens it for those inside


def named_gpus(visible: str) -> list[str]:
    """The indices and UUIDs in a value of CUDA_VISIBLE_DEVICES or its like; -1 hides all that follow."""
    names = (name.strip() for name in visible.split(","))
    return list(takewhile("-1".__ne__, filter(None, names)))


def gpu_count() -> int | None:
    """NVIDIA GPUs of this machine; None where the driver does not say."""
    return _known(lambda nvml: int(nvml.nvmlDeviceGetCount()))


def gpu_names() -> tuple[str, ...] | None:
    """Names as NVML has them, of the GPUs that answer; None without a driver."""

    def read(nvml: ModuleType) -> tuple[str, ...]:
        names = []
        for index in range(nvml.nvmlDeviceGetCount()):
            with suppress(nvml.NVMLError):  # it has fallen off the bus
                names.append(str(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))))
        return tuple(names)

    return _known(read)


def driver_version() -> str | None:
    return _known(lambda nvml: str(nvml.nvmlSystemGetDriverVersion()))


def cuda_version() -> int | None:
    """Major version of CUDA that the driver knows; None where it does not say."""
    return _known(lambda nvml: int(nvml.nvmlSystemGetCudaDriverVersion()) // 1000)


def handle(nvml: ModuleType, gpu: str) -> Any:
    """The GPU with this index or UUID. Raises NVMLError, also for a UUID that is not written out."""
    if gpu.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(gpu))
    return nvml.nvmlDeviceGetHandleByUUID(gpu)


def memory_bytes(gpus: Sequence[str]) -> int | None:
    """What these GPUs have together; None where the driver does not say, as where they use the host's."""

    def read(nvml: ModuleType) -> int:
        return sum(int(nvml.nvmlDeviceGetMemoryInfo(handle(nvml, gpu)).total) for gpu in gpus)

    return _known(read)


def is_gone(error: Exception) -> bool:
    """Whether this NVMLError says that the GPU will not answer again until it is reset."""
    import pynvml as nvml

    gone = (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED, nvml.NVML_ERROR_GPU_NOT_FOUND)
    return getattr(error, "value", None) in gone


def fault(gpus: Sequence[str]) -> str | None:
    """Says why the driver cannot use these GPUs; None where it can, or says nothing of it.

    A container may have CUDA without NVML's library.
    """
    import pynvml

    gpu = ""

    def look(nvml: ModuleType) -> None:
        nonlocal gpu
        for gpu in gpus:
            handle(nvml, gpu)

    try:
        ask(look)
    except pynvml.NVMLError_LibraryNotFound:
        return None
    except pynvml.NVMLError as error:
        if not gpu:
            ours = isinstance(error, pynvml.NVMLError_LibRmVersionMismatch)
            more = " In a container: it has a libnvidia-ml of its own, not that of the host." if ours else ""
            return f"NVIDIA's driver does not answer: {error}{more}"
        return f"GPU {gpu} does not answer: {error}" if is_gone(error) else None
    return None


class _Keeper(ExitStack):
    """Closes the driver at its end, once it opened it."""

    has_opened = False


@contextmanager
def kept_open() -> Iterator[None]:
    """Leaves the driver open from the first question inside to the end. Without persistence mode eight GPUs
    take seconds to open, and close with the last who has them open.
    """
    with _Keeper() as keeper:
        _keepers.append(keeper)
        try:
            yield
        finally:
            _keepers.pop()


def ask(question: Callable[[ModuleType], T]) -> T:
    """Gives `pynvml` to the question. Raises its NVMLError, also where there is no driver."""
    import pynvml

    with _Keeper() as own:
        keeper = _keepers[0] if _keepers else own
        if not keeper.has_opened:
            pynvml.nvmlInit()
            keeper.callback(_close)
            keeper.has_opened = True
        return question(pynvml)


def _close() -> None:
    """Waits for a few seconds at most, and raises nothing: a driver that was lost or hangs meanwhile must not
    keep back what was measured.
    """
    import pynvml

    def shut() -> None:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()

    closing = Thread(target=shut, daemon=True)
    closing.start()
    closing.join(_CLOSE_S)


def _known(question: Callable[[ModuleType], T]) -> T | None:
    import pynvml

    try:
        return ask(question)
    except pynvml.NVMLError:
        return None
