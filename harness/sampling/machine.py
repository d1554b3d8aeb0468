"""This machine and this installation. A fact that cannot be read is null, never a guess."""

import os
import platform
import socket
import sys
from importlib import metadata
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from harness import __version__
from harness.host import installation
from harness.host.address import is_loopback
from harness.host.cpus import cpu_flags, cpu_quota, usable_cpus
from harness.host.nvml import driver_version, gpu_names, kept_open
from harness.host.system_files import text_of
from harness.model import HostFacts

_BRIDGES = ("docker", "br-")  # of Docker's networks: behind them are this machine's containers
_CPU_FEATURES = frozenset(
    "avx avx2 fma f16c avx_vnni avx512f avx512_vnni avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 "
    "asimd asimdhp asimddp i8mm bf16 sve sve2".split()
)  # x86-64, then ARM
_SYSTEM = Path("/sys/devices/system/cpu")


@kept_open()
def host_facts() -> HostFacts:
    return HostFacts(
        hostname=platform.node(),
        system=platform.system(),
        kernel=platform.release(),
        machine=platform.machine(),
        python=sys.version.split()[0],
        cpu=_proc_value("/proc/cpuinfo", "model name"),
        cpu_features=cpu_features(),
        cpus=os.cpu_count(),
        cpus_usable=usable_cpus(),
        cpu_quota=cpu_quota(),
        cpu_governor=text_of(_SYSTEM / "cpu0/cpufreq/scaling_governor") or None,
        memory_bytes=_memory_bytes(),
        load_average_1min=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        gpus=gpu_names(),
        gpu_driver=driver_version(),
    )


def cpu_features() -> tuple[str, ...] | None:
    """Instructions by which inference engines choose their kernels; None where Linux lists none."""
    listed = cpu_flags()
    return tuple(sorted(_CPU_FEATURES & listed)) if listed else None


def package_versions() -> dict[str, str]:
    """The installed versions of this package's own requirements."""
    versions = {installation.DISTRIBUTION: __version__}
    for name in sorted(Requirement(line).name for line in installation.requirements()):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _proc_value(path: str, key: str) -> str | None:
    for line in text_of(Path(path)).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _memory_bytes() -> int | None:
    total = _proc_value("/proc/meminfo", "MemTotal")
    return int(total.split()[0]) * 1024 if total else None


def is_this_machine(hostname: str) -> bool:
    """Whether an address is one of ours, or of a container of ours; False if that cannot be found out."""
    try:
        hosts = {str(info[4][0]) for info in socket.getaddrinfo(hostname, None, type=socket.SOCK_STREAM)}
    except (OSError, ValueError):
        return False
    return any(is_loopback(host) or _is_ours(ip_address(host)) for host in hosts)


def _is_ours(wanted: IPv4Address | IPv6Address) -> bool:
    for name, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family not in (socket.AF_INET, socket.AF_INET6) or not address.netmask:
                continue
            own = ip_interface(f"{address.address.partition('%')[0]}/{_bits(address.netmask)}")
            if wanted == own.ip or (name.startswith(_BRIDGES) and wanted in own.network):
                return True
    return False


def _bits(netmask: str) -> int:
    return int(ip_address(netmask)).bit_count()
