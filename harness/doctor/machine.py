"""Facts about this machine that bear on exactness; null where they cannot be read."""

import resource
import time
from pathlib import Path

from harness.host import descriptors
from harness.host.system_files import text_of
from harness.load.stamps import StampClock, kernel_stamps_work
from harness.model import ClockFacts, HostFacts, LimitFacts

_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page")


def machine_hints(host: HostFacts, clock: ClockFacts) -> list[str]:
    """What to change about the machine, whether or not it showed in the figures."""
    hints = []
    if host.cpus_usable is not None and host.cpus_usable < 2:
        hints.append("only one core is usable: client and server take turns on it; use two or more")
    if host.cpu_governor not in (None, "performance"):
        hints.append(f"the CPU governor is {host.cpu_governor}: set it to performance")
    if not clock.kernel_receive_stamps:
        hints.append("the kernel gives no receive timestamps: arrivals count when they are read")
    if clock.source not in (None, *_FAST_CLOCKS):
        hints.append(f"the clock source is {clock.source}: slow to read; tsc is fast where it is stable")
    return hints


def clock_facts() -> ClockFacts:
    stamps = StampClock()
    stamps.sample()
    return ClockFacts(
        source=text_of(_CLOCK) or None,
        resolution_ns=time.get_clock_info("monotonic").resolution * 1e9,
        kernel_receive_stamps=kernel_stamps_work(),
        stamp_uncertainty_ns=stamps.uncertainty_ns(),
    )


def limit_facts() -> LimitFacts:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ports = _port_range()
    files = None if hard == resource.RLIM_INFINITY else hard - descriptors.SPARE
    allowed = [limit for limit in (files, ports and ports[1] - ports[0] + 1) if limit is not None]
    return LimitFacts(
        file_descriptors_soft=soft,
        file_descriptors_hard=None if hard == resource.RLIM_INFINITY else hard,
        ephemeral_ports=ports,
        connections_to_one_server=min(allowed, default=None),
    )


def _port_range() -> tuple[int, int] | None:
    ends = text_of(_PORTS).split()
    return (int(ends[0]), int(ends[1])) if ends else None
