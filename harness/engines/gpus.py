"""Which NVIDIA GPUs an engine gets, and whether somebody else is using them."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.engines.cache import Say
from harness.errors import SetupError

# The driver gives memory back some seconds after its process is gone.
RELEASE_S = 20.0
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Use:
    """One process on one GPU."""

    gpu: str
    pid: int
    memory_bytes: int | None  # None: the driver does not say (another container's, or MIG)

    def __str__(self) -> str:
        try:
            name = Path(f"/proc/{self.pid}/comm").read_text().strip()
        except OSError:
            name = "a process"
        memory = "" if self.memory_bytes is None else f", {self.memory_bytes / 2**30:.1f} GiB"
        return f"GPU {self.gpu}: {name} (pid {self.pid}{memory})"


def chosen_gpus(count: int) -> list[str]:
    """The first `count` of CUDA_VISIBLE_DEVICES, else of all."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return (visible or [str(index) for index in range(count)])[:count]


def await_free(gpus: Sequence[str], wait_s: float, say: Say) -> str | None:
    """Returns when no process computes on them; None, or why that could not be seen.

    Raises SetupError naming the processes when they are still there after `wait_s` seconds, or those that the
    driver takes to release memory.
    """
    deadline = time.monotonic() + max(wait_s, RELEASE_S)
    told = 0.0
    while True:
        uses = gpu_uses(gpus)
        if isinstance(uses, str):
            return uses
        if not uses:
            return None
        if time.monotonic() >= deadline:
            raise in_use(gpus, uses)
        if time.monotonic() - told >= 5 * _POLL_S:
            told = time.monotonic()
            say(f"waiting for a free GPU, {deadline - told:.0f} s more: {'; '.join(map(str, uses))}")
        time.sleep(_POLL_S)


def in_use(gpus: Sequence[str], uses: Sequence[Use]) -> SetupError:
    return SetupError(
        f"another process computes on it: {'; '.join(map(str, uses))}",
        where=f"GPU {', '.join(gpus)}",
        hint="stop it, wait for it with --gpu-wait S, or choose another with CUDA_VISIBLE_DEVICES",
    )


def gpu_count() -> int | None:
    """NVIDIA GPUs of this machine; None where the driver does not say."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def gpu_uses(gpus: Sequence[str]) -> list[Use] | str:
    """By index or UUID; text: why it cannot be told."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"NVML cannot be asked: {error}"
    try:
        return [
            Use(gpu, process.pid, process.usedGpuMemory)
            for gpu in gpus
            for process in pynvml.nvmlDeviceGetComputeRunningProcesses(_handle(gpu))
        ]
    except pynvml.NVMLError as error:
        return f"NVML does not tell the processes of GPU {', '.join(gpus)}: {error}"
    finally:
        pynvml.nvmlShutdown()


def _handle(gpu: str) -> object:
    import pynvml

    by_index = pynvml.nvmlDeviceGetHandleByIndex
    return by_index(int(gpu)) if gpu.isdigit() else pynvml.nvmlDeviceGetHandleByUUID(gpu)
