"""AMD GPUs through amdsmi, where ROCm installed it: the same series as NVIDIA's."""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.sampling.sources import OWNERS, UNKNOWN_PROCESSES, Put, UnavailableError, UnreadableError, lose
from harness.sampling.sources.visible import AMD, NOT_NAMED, all_hidden, visible

_SLOWLY = 10  # reads between two of what changes slowly
_NO_DRIVER = 34  # AMDSMI_STATUS_DRIVER_NOT_LOADED: ROCm is installed, and there is no GPU


class AmdGpus:
    """Written against amdsmi 7.0.2. A field that a GPU does not have comes as "N/A" or as an error of the
    library."""

    def __init__(
        self, env: Mapping[str, str], engine_pids: Callable[[], frozenset[int]], period_s: float
    ) -> None:
        self.period_s = period_s
        self.missing: dict[str, str] = {}
        self.about: dict[str, Any] = {"broken": False}
        self._env, self._engine_pids = env, engine_pids
        self._smi: Any = None
        self._handles: dict[int, Any] = {}
        self._reads = 0

    def open(self) -> None:
        if hidden := all_hidden(self._env, AMD):
            raise UnavailableError(f"amdsmi: {hidden}")
        try:
            self._smi = importlib.import_module("amdsmi")
        except (ImportError, KeyError, OSError) as error:  # without ROCm its import fails in several ways
            raise UnavailableError(f"amdsmi: {error}") from None
        smi = self._smi
        try:
            smi.amdsmi_init()
            handles = list(smi.amdsmi_get_processor_handles())
        except smi.AmdSmiException as error:
            self.about["broken"] = getattr(error, "err_code", None) != _NO_DRIVER
            raise UnavailableError(f"amdsmi: {error}") from None
        found, silent = self._answering(handles)
        # A GPU that does not answer keeps its number: those after it are not counted again.
        uuids = [str(found[index]["uuid"]) if index in found else "" for index in range(len(handles))]
        chosen, why = visible(self._env, uuids, {}, AMD)
        self.about["devices"] = [found[index] for index in chosen if index in found]
        self.about["chosen"] = f"{len(chosen)} of {len(handles)} GPUs: {why}"
        self.about["named"] = why != NOT_NAMED
        for index in filter(silent.__contains__, chosen):
            lose(self, f"gpu.{index}", "amdsmi", silent[index])
        self._handles = {index: handles[index] for index in chosen if index in found}
        if not self._handles:
            self.about["broken"] = bool(chosen)
            reasons = [f"gpu.{index}: {silent[index]}" for index in chosen] or [self.about["chosen"]]
            raise UnavailableError(f"amdsmi: {'; '.join(reasons)}")

    def _answering(self, handles: Sequence[Any]) -> tuple[dict[int, dict[str, object]], dict[int, Exception]]:
        """The facts of the GPUs by number, and the errors of those that do not answer."""
        found: dict[int, dict[str, object]] = {}
        silent: dict[int, Exception] = {}
        for index, handle in enumerate(handles):
            try:
                found[index] = self._facts(index, handle)
            except self._smi.AmdSmiException as error:
                silent[index] = error
        return found, silent

    def _facts(self, index: int, handle: Any) -> dict[str, object]:
        """What another version of the library names otherwise is None."""
        asic = self._smi.amdsmi_get_gpu_asic_info(handle)
        total_mib = self._smi.amdsmi_get_gpu_vram_usage(handle).get("vram_total")
        return {
            "index": index,
            "name": asic.get("market_name"),
            "uuid": self._smi.amdsmi_get_gpu_device_uuid(handle),
            "driver": None,
            "memory_bytes": total_mib << 20 if isinstance(total_mib, int) else None,
            "power_limit_w": None,
            "mig": [],
        }

    def read(self, put: Put) -> None:
        slowly = self._reads % _SLOWLY == 0
        if slowly:
            self.missing.pop(OWNERS, None)
        self._reads += 1
        read_any = False
        for index, handle in self._handles.items():
            readings = [self._activity, self._memory, self._power, self._energy]
            for reading in readings + [self._clocks, self._heat, self._owners] * slowly:
                whole = f"gpu.{index}.{reading.__name__.strip('_')}"
                try:
                    values = dict(reading(handle))
                except self._smi.AmdSmiException as error:
                    self.missing[whole] = f"amdsmi: {error}"
                    continue
                except (KeyError, TypeError) as error:  # a name or "N/A" of another version of the library
                    self.missing[whole] = f"amdsmi: {error!r}"
                    continue
                self.missing.pop(whole, None)
                for key, value in values.items():
                    name = f"gpu.{index}.{key}"
                    if isinstance(value, int | float):
                        put(name, value)
                        self.missing.pop(name, None)
                        read_any = True
                    else:
                        self.missing[name] = "amdsmi: N/A"
        if not read_any:
            raise UnreadableError("amdsmi: no GPU could be read")

    def _activity(self, handle: Any) -> Iterator[tuple[str, Any]]:
        activity = self._smi.amdsmi_get_gpu_activity(handle)
        yield "utilisation_pct", activity["gfx_activity"]
        yield "memory_utilisation_pct", activity["umc_activity"]

    def _memory(self, handle: Any) -> Iterator[tuple[str, Any]]:
        yield "memory_used_bytes", self._smi.amdsmi_get_gpu_vram_usage(handle)["vram_used"] << 20

    def _power(self, handle: Any) -> Iterator[tuple[str, Any]]:
        """MI300 and newer report the current power, older ones an average."""
        info = self._smi.amdsmi_get_power_info(handle)
        numbers = [info.get(key) for key in ("current_socket_power", "average_socket_power", "socket_power")]
        yield "power_w", next((value for value in numbers if isinstance(value, int | float) and value), "N/A")

    def _energy(self, handle: Any) -> Iterator[tuple[str, Any]]:
        """The resolution is in microjoules."""
        count = self._smi.amdsmi_get_energy_count(handle)
        yield "energy_j", count["energy_accumulator"] * count["counter_resolution"] / 1e6

    def _clocks(self, handle: Any) -> Iterator[tuple[str, Any]]:
        kinds = self._smi.AmdSmiClkType
        yield "sm_clock_mhz", self._smi.amdsmi_get_clock_info(handle, kinds.GFX)["clk"]
        yield "memory_clock_mhz", self._smi.amdsmi_get_clock_info(handle, kinds.MEM)["clk"]

    def _heat(self, handle: Any) -> Iterator[tuple[str, Any]]:
        smi = self._smi
        yield (
            "temperature_c",
            smi.amdsmi_get_temp_metric(
                handle, smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
            ),
        )

    def _owners(self, handle: Any) -> Iterator[tuple[str, Any]]:
        engine = self._engine_pids()
        if not engine:
            return
        sizes = {
            process["pid"]: process["memory_usage"]["vram_mem"]
            for process in self._smi.amdsmi_get_gpu_process_list(handle)
        }
        if not all(Path(f"/proc/{pid}").exists() for pid in sizes):
            self.missing[OWNERS] = UNKNOWN_PROCESSES
            return
        ours = sum(size for pid, size in sizes.items() if pid in engine)
        yield "engine_memory_bytes", ours
        yield "other_memory_bytes", sum(sizes.values()) - ours

    def close(self) -> None:
        self._smi.amdsmi_shut_down()
