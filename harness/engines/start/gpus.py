"""The NVIDIA GPUs that an engine gets, and whether another process uses them."""

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from harness.engines.provide.shared_folders import Say
from harness.errors import SetupError
from harness.host import nvml
from harness.host.system_files import text_of
from harness.model.numbers import GIB
from harness.spec.backend import Backend

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
        name = text_of(Path(f"/proc/{self.pid}/comm")) or "a process"
        memory = "" if self.memory_bytes is None else f", {self.memory_bytes / GIB:.1f} GiB"
        return f"GPU {self.gpu}: {name} (pid {self.pid}{memory})"


def gpus_needed(definition: Backend) -> int:
    """How many GPUs the engine is spread over."""
    return int(definition.engine.values.get("tensor_parallel", 1))


def chosen_gpus(count: int, asked: Sequence[str] = ()) -> list[str]:
    """The first `count` of those asked for, else of CUDA_VISIBLE_DEVICES, else of all.

    That variable hides all of them where it is empty or -1.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if asked:
        return list(asked[:count])
    if visible is None:
        return [str(index) for index in range(count)]
    return nvml.named_gpus(visible)[:count]


def environment(gpus: Sequence[str]) -> dict[str, str]:
    """Variables for an engine that is to see these GPUs alone."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def await_free(gpus: Sequence[str], wait_s: float, say: Say) -> tuple[str | None, float]:
    """Waits until no process computes on them. Returns None, or why that could not be seen, and the seconds
    it waited.

    Raises SetupError naming the processes when they are still there after `wait_s` seconds, or those that the
    driver takes to release memory.
    """
    began_s = time.monotonic()
    deadline = began_s + max(wait_s, RELEASE_S)
    reported_s = 0.0
    while gpus and (uses := gpu_uses(gpus)):
        if isinstance(uses, str):
            return f"whether another process uses the GPU was not seen: {uses}", time.monotonic() - began_s
        if time.monotonic() >= deadline:
            raise in_use(gpus, uses)
        if time.monotonic() - reported_s >= 5 * _POLL_S:
            reported_s = time.monotonic()
            say(f"waiting for a free GPU, {deadline - reported_s:.0f} s more: {'; '.join(map(str, uses))}")
        time.sleep(_POLL_S)
    return None, time.monotonic() - began_s


def in_use(gpus: Sequence[str], uses: Sequence[Use]) -> SetupError:
    return SetupError(
        f"another process computes on it: {'; '.join(map(str, uses))}",
        where=f"GPU {', '.join(gpus)}",
        hint="stop it, wait for it with --gpu-wait S, or choose another with --gpus",
    )


def gpu_uses(gpus: Sequence[str]) -> list[Use] | str:
    """Uses by index or UUID, or a text with the reason they are not known."""
    import pynvml

    def read(library: ModuleType) -> list[Use]:
        uses = []
        for gpu in gpus:
            running = library.nvmlDeviceGetComputeRunningProcesses(nvml.handle(library, gpu))
            uses += [Use(gpu, process.pid, process.usedGpuMemory) for process in running]
        return uses

    try:
        return nvml.ask(read)
    except pynvml.NVMLError as error:
        return f"NVML does not report the processes of GPU {', '.join(gpus)}: {error}"


def computing(gpus: Sequence[str], pids: Collection[int]) -> tuple[list[int], str | None]:
    """Returns those of `pids` that compute on the GPUs; and where there is none, why, as far as it is
    known.
    """
    uses = gpu_uses(gpus)
    if isinstance(uses, str):
        return [], f"whether the engine computes on the GPU was not seen: {uses}"
    if found := sorted({use.pid for use in uses} & set(pids)):
        return found, None
    where = f"on GPU {', '.join(gpus)}"
    if uses and not all(Path(f"/proc/{use.pid}").exists() for use in uses):
        return (
            [],
            f"the processes {where} have numbers of another namespace: which are the engine's is unknown",
        )
    return [], f"NVML sees no process of the engine {where}"
