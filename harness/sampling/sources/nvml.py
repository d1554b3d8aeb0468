"""NVIDIA GPUs through NVML. A field that a GPU does not have is missing with NVML's reason, never zero."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml

from harness.host.nvml import is_gone
from harness.sampling.sources import OWNERS, UNKNOWN_PROCESSES, Put, UnavailableError, UnreadableError, lose
from harness.sampling.sources.visible import NOT_NAMED, all_hidden, visible

_BYTES = 1024.0  # NVML counts PCIe in KiB/s
_NEVER = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
)
# Without a GPU there is nothing to be said; anything else NVML complains of is a fault of this machine.
_NONE_HERE = (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)

Handle = Any
Values = Mapping[str, float]


@dataclass(slots=True)
class Reading:
    """One call to NVML and the fields that it gives."""

    fields: tuple[str, ...]
    read: Callable[[Handle], Values]


@dataclass(slots=True)
class Device:
    index: int
    handle: Handle
    readings: list[Reading]
    mig: "dict[int, Handle]" = field(default_factory=dict)  # number of the instance → its handle

    @property
    def name(self) -> str:
        return f"gpu.{self.index}"


def utilisation(handle: Handle) -> Values:
    """The shares of the last sample period (1/6 to 1 s) in which a kernel ran, and in which memory was
    accessed."""
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"utilisation_pct": rates.gpu, "memory_utilisation_pct": rates.memory}


def memory(handle: Handle) -> Values:
    return {"memory_used_bytes": pynvml.nvmlDeviceGetMemoryInfo(handle).used}


def power(handle: Handle) -> Values:
    """The current power if the GPU reports it, else its own average over up to a second."""
    with contextlib.suppress(pynvml.NVMLError):  # one that matters comes again from the other call
        (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_POWER_INSTANT])
        if value.nvmlReturn == pynvml.NVML_SUCCESS:
            return {"power_w": value.value.uiVal / 1e3}
    return {"power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3}


def energy(handle: Handle) -> Values:
    """Counts since the driver was loaded. An H200's driver takes 3.6 ms of CPU time for it."""
    return {"energy_j": pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3}


def clocks(handle: Handle) -> Values:
    return {
        "sm_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "memory_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    }


def temperature(handle: Handle) -> Values:
    return {"temperature_c": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)}


def throttling(handle: Handle) -> Values:
    """Bits of nvmlClocksEventReasons."""
    return {"throttle_bits": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)}


def pcie(handle: Handle) -> Values:
    """NVML waits 20 ms for each direction."""
    sent = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_TX_BYTES)
    received = pynvml.nvmlDeviceGetPcieThroughput(handle, pynvml.NVML_PCIE_UTIL_RX_BYTES)
    return {
        "pcie_sent_bytes_per_s": sent * _BYTES,
        "pcie_received_bytes_per_s": received * _BYTES,
    }


class Profile:
    """Counters inside the chip, from Hopper on: shares of its peak since the previous read."""

    FIELDS = ("sm_active_pct", "tensor_active_pct", "dram_active_pct")
    _METRICS = (
        pynvml.NVML_GPM_METRIC_SM_UTIL,
        pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
        pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
    )

    def __init__(self) -> None:
        self._samples: list[Any] = []  # of NVML: the one before, and one to read into

    def __call__(self, handle: Handle) -> Values:
        first = not self._samples
        if first:
            if not pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            self._samples = [pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()]
        before, now = self._samples
        pynvml.nvmlGpmSampleGet(handle, now)
        self._samples = [now, before]
        if first:
            return {}
        asked = pynvml.c_nvmlGpmMetricsGet_t()
        asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics, asked.sample1, asked.sample2 = len(self._METRICS), before, now
        for index, metric in enumerate(self._METRICS):
            asked.metrics[index].metricId = metric
        pynvml.nvmlGpmMetricsGet(asked)
        return {
            name: asked.metrics[index].value
            for index, name in enumerate(self.FIELDS)
            if asked.metrics[index].nvmlReturn == pynvml.NVML_SUCCESS
        }


class Gpus(ABC):
    """The devices, and what happens to a field or a device that fails: common to both beats."""

    def __init__(self, env: Mapping[str, str], period_s: float) -> None:
        self.period_s = period_s
        self.missing: dict[str, str] = {}
        self.about: dict[str, Any] = {"broken": False}  # for `cell.json`, as it is
        self.devices: list[Device] = []
        self._env = env

    @abstractmethod
    def readings(self) -> list[Reading]: ...

    def open(self) -> None:
        if hidden := all_hidden(self._env):  # a driver that hangs must not hold up a cell on the CPU
            raise UnavailableError(f"NVML: {hidden}")
        self.about["broken"] = True  # until it has answered: one that takes too long is there
        try:
            pynvml.nvmlInit()
            found, silent = _devices()
        except pynvml.NVMLError as error:
            self.about["broken"] = error.value not in _NONE_HERE
            raise UnavailableError(f"NVML: {error}") from None
        self.about["broken"] = False
        # A GPU that does not answer keeps its number: those after it are not counted again.
        uuids = [found[index][0]["uuid"] if index in found else "" for index in range(len(found | silent))]
        parents = {
            instance["uuid"]: index for index, (facts, _, _) in found.items() for instance in facts["mig"]
        }
        chosen, why = visible(self._env, uuids, parents)
        self.about["chosen"] = f"{len(chosen)} of {len(uuids)} GPUs: {why}"
        self.about["named"] = why != NOT_NAMED
        for index in filter(silent.__contains__, chosen):
            lose(self, f"gpu.{index}", "NVML", silent[index])
        answering = [index for index in chosen if index in found]
        self.about["devices"] = [found[index][0] for index in answering]
        self.devices = [
            Device(index, found[index][1], self.readings(), found[index][2]) for index in answering
        ]
        if not self.devices:
            self.about["broken"] = bool(chosen)
            reasons = [f"gpu.{index}: {silent[index]}" for index in chosen] or [self.about["chosen"]]
            raise UnavailableError(f"NVML: {'; '.join(reasons)}")

    def read(self, put: Put) -> None:
        asked = list(self.devices)
        problems = [problem for device in asked for problem in self._read(device, put)]
        if len(problems) == len(asked):  # none answers, or none is left
            raise UnreadableError("; ".join(problems) or "; ".join(self.missing.values()))

    def _read(self, device: Device, put: Put) -> Iterator[str]:
        """Yields at most one problem: of a device that is lost, or of which nothing can be read now."""
        failed: list[pynvml.NVMLError] = []
        asked = list(device.readings)
        for reading in asked:
            try:
                for name, value in reading.read(device.handle).items():
                    put(f"{device.name}.{name}", value)
            except pynvml.NVMLError as error:
                if is_gone(error):
                    self.devices.remove(device)
                    lose(self, device.name, "NVML", error)
                    yield f"{device.name}: {error}"
                    return
                if error.value in _NEVER:
                    device.readings.remove(reading)
                else:
                    failed.append(error)
                self.missing |= {f"{device.name}.{name}": f"NVML: {error}" for name in reading.fields}
            else:
                for name in reading.fields:
                    self.missing.pop(f"{device.name}.{name}", None)
        if failed and len(failed) == len(asked):
            yield f"{device.name}: {failed[0]}"

    def close(self) -> None:
        pynvml.nvmlShutdown()


class NvidiaGpus(Gpus):
    """Fields that change with every batch and are cheap to read: utilisation, memory, power."""

    def readings(self) -> list[Reading]:
        return [
            Reading(("utilisation_pct", "memory_utilisation_pct"), utilisation),
            Reading(("memory_used_bytes",), memory),
            Reading(("power_w",), power),
        ]

    def _read(self, device: Device, put: Put) -> Iterator[str]:
        """Memory alone can be read of a MIG instance; power is the whole GPU's."""
        yield from super()._read(device, put)
        for number, handle in device.mig.items():
            name = f"{device.name}.mig.{number}.memory_used_bytes"
            try:
                put(name, memory(handle)["memory_used_bytes"])
                self.missing.pop(name, None)
            except pynvml.NVMLError as error:
                self.missing[name] = f"NVML: {error}"


class NvidiaGpusSlowly(Gpus):
    """Fields that change slowly, or take NVML milliseconds: clocks, heat, throttling, PCIe, the counter of
    energy, memory by process."""

    def __init__(
        self, env: Mapping[str, str], engine_pids: Callable[[], frozenset[int]], period_s: float
    ) -> None:
        super().__init__(env, period_s)
        self._engine_pids = engine_pids

    def readings(self) -> list[Reading]:
        return [
            Reading(("sm_clock_mhz", "memory_clock_mhz"), clocks),
            Reading(("energy_j",), energy),
            Reading(("temperature_c",), temperature),
            Reading(("throttle_bits",), throttling),
            Reading(("pcie_sent_bytes_per_s", "pcie_received_bytes_per_s"), pcie),
            Reading(("engine_memory_bytes", "other_memory_bytes"), self._owners),
            Reading(Profile.FIELDS, Profile()),
        ]

    def read(self, put: Put) -> None:
        self.missing.pop(OWNERS, None)
        super().read(put)

    def _owners(self, handle: Handle) -> Values:
        """The GPU's memory by process of the engine; nothing if its pids are not known or of another
        namespace."""
        listed = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        used = {process.pid: process.usedGpuMemory for process in listed}
        known = {pid: size for pid, size in used.items() if size is not None}
        engine = self._engine_pids()
        if not engine or len(known) < len(used):
            return {}
        if not all(Path(f"/proc/{pid}").exists() for pid in used):
            self.missing[OWNERS] = UNKNOWN_PROCESSES
            return {}
        ours = sum(size for pid, size in known.items() if pid in engine)
        return {"engine_memory_bytes": ours, "other_memory_bytes": sum(known.values()) - ours}


Found = tuple[dict[str, Any], Handle, dict[int, Handle]]  # facts of a GPU, its handle and its instances


def _devices() -> tuple[dict[int, Found], dict[int, pynvml.NVMLError]]:
    """The GPUs by number, and the errors of those that do not answer: fallen off the bus, or not ours."""
    driver = pynvml.nvmlSystemGetDriverVersion()
    found: dict[int, Found] = {}
    silent: dict[int, pynvml.NVMLError] = {}
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            found[index] = _device(index, driver)
        except pynvml.NVMLError as error:
            silent[index] = error
    return found, silent


def _device(index: int, driver: str) -> Found:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    instances = dict(_instances(handle))
    facts = {
        "index": index,
        "name": pynvml.nvmlDeviceGetName(handle),
        "uuid": pynvml.nvmlDeviceGetUUID(handle),
        "driver": driver,
        "memory_bytes": _or_none(lambda h: pynvml.nvmlDeviceGetMemoryInfo(h).total, handle),
        "power_limit_w": _or_none(lambda h: pynvml.nvmlDeviceGetPowerManagementLimit(h) / 1e3, handle),
        "mig": [
            {"number": number, "uuid": pynvml.nvmlDeviceGetUUID(instance)}
            for number, instance in instances.items()
        ],
    }
    return facts, handle, instances


def _instances(handle: Handle) -> Iterator[tuple[int, Handle]]:
    """Nothing on a GPU without MIG, or with MIG switched off."""
    mode = _or_none(pynvml.nvmlDeviceGetMigMode, handle)
    if not mode or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        instance = _or_none(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if instance is not None:
            yield number, instance


def _or_none(read: Callable[..., Any], handle: Handle, *more: int) -> Any:
    try:
        return read(handle, *more)
    except pynvml.NVMLError:
        return None
