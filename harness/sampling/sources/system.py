"""This machine as a whole: CPU, memory, disks, network, and the energy counters of its CPU packages."""

from pathlib import Path
from typing import Any

import psutil

from harness.host.system_files import text_of
from harness.sampling.sources import Put, Source

_RAPL = Path("/sys/class/powercap")
_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")  # guest time is inside user
_DEVICES_EVERY = 4  # reads between two looks at disks and network, which cost more


class System(Source):
    """Puts counters as they stand; rates are computed where they are read."""

    def __init__(self, period_s: float, powercap: Path = _RAPL, *, energy: bool = True) -> None:
        self.period_s = period_s
        self.missing = {}
        self.about = {"cpus": psutil.cpu_count()}
        self._powercap, self._energy = powercap, energy
        self._packages: list[Package] = []
        self._reads = 0

    def open(self) -> None:
        if not self._energy:
            self.missing["cpu.*.energy_j"] = "the engine runs on another machine"
            return
        # intel-rapl:0 is a package (AMD's are named so too); intel-rapl:0:1 is a part of it.
        packages = sorted(self._powercap.glob("intel-rapl:[0-9]*"))
        zones = [Package(zone) for zone in packages if zone.name.count(":") == 1]
        self._packages = [zone for zone in zones if zone.name.startswith("package")]
        self.about["cpu_packages"] = [zone.name for zone in self._packages]
        if not self._packages:
            self.missing["cpu.*.energy_j"] = f"no RAPL energy counter of a CPU package under {self._powercap}"

    def read(self, put: Put) -> None:
        times = psutil.cpu_times()
        put("host.cpu_busy_s", busy_s(times))
        put("host.cpu_stolen_s", getattr(times, "steal", 0.0))
        put("host.memory_used_bytes", psutil.virtual_memory().used)
        for index, package in enumerate(self._packages):
            try:
                put(f"cpu.{index}.energy_j", package.joules())
            except OSError as error:
                self.missing[f"cpu.{index}.energy_j"] = f"{package.counter}: {error.strerror}"
        if self._reads % _DEVICES_EVERY == 0:
            self._read_devices(put)
        self._reads += 1

    def _read_devices(self, put: Put) -> None:
        disks, network = psutil.disk_io_counters(), psutil.net_io_counters()
        if disks is not None:
            put("host.disk_read_bytes", disks.read_bytes)
            put("host.disk_written_bytes", disks.write_bytes)
        if network is not None:
            put("host.net_received_bytes", network.bytes_recv)
            put("host.net_sent_bytes", network.bytes_sent)


def busy_s(times: Any) -> float:
    """CPU seconds that were not idle, from psutil.cpu_times(); what a hypervisor took counts.

    Not the total less idle, since the kernel's idle and iowait times may fall.
    """
    return float(sum(getattr(times, name, 0.0) for name in _BUSY))


class Package:
    """A RAPL zone, whose counter of microjoules starts again at zero."""

    def __init__(self, zone: Path) -> None:
        self.counter = zone / "energy_uj"
        self.name = text_of(zone / "name")
        self._range_uj = int(text_of(zone / "max_energy_range_uj") or 0)
        self._last_uj = self._wrapped_uj = 0

    def joules(self) -> float:
        """Microjoules made joules that never fall. Raises OSError: most kernels let only root read the
        counter."""
        now_uj = int(self.counter.read_text(encoding="ascii"))
        if now_uj < self._last_uj:
            self._wrapped_uj += self._range_uj
        self._last_uj = now_uj
        return (self._wrapped_uj + now_uj) / 1e6
