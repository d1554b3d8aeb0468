"""What else went on: other work on the machine and its GPUs, and whether the engine restarted."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.metrics.usage import Usage
from harness.model import CellResult, Gpu, Host, Reason, RunWarning, TelemetryHealth

Json = Mapping[str, Any]

OTHER_CORES_SHARE = 0.1  # of the machine's cores, kept busy by neither engine nor load generator
GPU_BUSY_BEFORE_PCT = 5.0  # by NVML, in the seconds before the first request
OTHER_GPU_MEMORY_BYTES = 1 << 30
THROTTLED_SHARE = 0.05
# A power cap is how a GPU normally runs at full load; these are not.
_NAMES = {"engine": "the engine's metrics", "nvidia": "NVML", "nvidia-slow": "NVML", "amd": "amdsmi"}
THROTTLING = ("hardware slowdown", "software thermal", "hardware thermal", "power brake")


def findings(facts: Json, watched: Usage | None) -> Iterator[Reason]:
    """What is null is not judged."""
    if watched is not None and watched.host is not None:
        yield from _contended(watched.host)
    if watched is not None and watched.gpu is not None:
        yield from _gpus(watched.gpu)
    if facts.get("counter_restarts"):
        yield Reason(
            "engine-restarted",
            "INVALID",
            f"its counters fell {facts['counter_restarts']} time(s)",
            "0",
            "the engine restarted during the cell: see its log",
        )


def _contended(host: Host) -> Iterator[Reason]:
    others, cpus = host.other_cores, host.cpus
    if others is None or not cpus or others < OTHER_CORES_SHARE * cpus:
        return
    stolen = host.stolen_cores or 0.0
    taken = f", {stolen:.2f} of it taken by the hypervisor" if stolen >= 0.01 else ""
    yield Reason(
        "contended",
        "SUSPECT",
        f"{others:.2f} of {cpus} cores ({others / cpus:.0%}) kept busy by other work{taken}",
        f"{OTHER_CORES_SHARE:.0%} of the cores",
        "stop what else runs on this machine, or measure again when it is idle",
    )


def _gpus(gpu: Gpu) -> Iterator[Reason]:
    before = gpu.idle_utilisation_pct
    if before is not None and before > GPU_BUSY_BEFORE_PCT:
        yield Reason(
            "gpu-busy",
            "SUSPECT",
            f"{before:.0f} % busy before the first request",
            f"{GPU_BUSY_BEFORE_PCT:g} %",
            "something else computes on this GPU: see nvidia-smi",
        )
    others = gpu.other_memory_bytes.max if gpu.other_memory_bytes else None
    if others is not None and others > OTHER_GPU_MEMORY_BYTES:
        yield Reason(
            "gpu-shared",
            "SUSPECT",
            f"{others / 2**30:.1f} GiB of GPU memory held by other processes",
            f"{OTHER_GPU_MEMORY_BYTES / 2**30:g} GiB",
            "stop the other processes on this GPU: see nvidia-smi",
        )
    for device in gpu.devices:
        slowed = {
            name: share for name, share in (device["throttled_share"] or {}).items() if name in THROTTLING
        }
        if device["index"] in gpu.engine_gpus and max(slowed.values(), default=0.0) > THROTTLED_SHARE:
            yield Reason(
                "gpu-throttled",
                "SUSPECT",
                f"GPU {device['index']}: "
                + ", ".join(f"{name} {share:.0%}" for name, share in slowed.items()),
                f"{THROTTLED_SHARE:.0%} of the time",
                "the GPU slowed itself down: look at its cooling and power supply",
            )


def gaps(cells: Iterable[CellResult]) -> list[RunWarning]:
    """Warnings about samples that are missing: a cell is as valid without them, but explains less."""
    where: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for key in dict.fromkeys(_gaps(cell.telemetry)):
            where.setdefault(key, []).append(cell.cell)
    return [
        RunWarning(code="telemetry-gap", text=f"{text} ({', '.join(names)})", hint=hint)
        for (text, hint), names in where.items()
    ]


def _gaps(telemetry: TelemetryHealth) -> Iterator[tuple[str, str]]:
    if telemetry.wanted and telemetry.problem:
        yield f"nothing was sampled to the end: {telemetry.problem}", "see docs/telemetry.md"
    for name, source in telemetry.sources.items():
        about = source.about
        if about.get("broken"):
            yield source.unavailable, "there seems to be a GPU: reload its driver, or reboot"
        for device, lost in (about.get("lost") or {}).items():
            yield f"{device} was lost: {lost['why']}", "see `dmesg` for Xid messages"
        if source.failing_since_s is not None:
            how = "stopped answering" if source.reads else "did not answer"
            yield (
                f"{_NAMES.get(name, name)} {how}: {source.last_failure}",
                "its figures are null, or of a part",
            )
