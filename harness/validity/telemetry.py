"""Missing samples: a cell is as valid without them, but explains less."""

from collections.abc import Iterator, Sequence

from harness.errors import page_address
from harness.model import CellResult, RunWarning, TelemetryHealth, known, labels
from harness.model.grouping import grouped
from harness.validity.notices import GPU_IDLE, GPU_LOST, GPUS_NOT_KNOWN, TELEMETRY_GAP

IDLE_PCT = 1.0  # of the time, at any sample
MAX_STALL_MS = 1000.0  # the slowest source that figures need has some samples in it
_NAMES = {"engine": "the engine's metrics", "nvidia": "NVML", "nvidia-slow": "NVML", "amd": "amdsmi"}


def gaps(cells: Sequence[CellResult]) -> list[RunWarning]:
    where: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        for key in dict.fromkeys(_gaps(cell.telemetry)):
            where.setdefault(key, []).append(cell.cell)
    missed = [
        TELEMETRY_GAP.warning(f"{text} ({', '.join(names)})", hint) for (text, hint), names in where.items()
    ]
    return [*_lost(cells), *_idle(cells), *missed, *_gpus_not_known(cells)]


def _lost(cells: Sequence[CellResult]) -> Iterator[RunWarning]:
    found = grouped(
        ((f"{device} was lost: {lost['why']}", _without(cell, device)), cell.cell)
        for cell in cells
        for source in cell.telemetry.sources.values()
        for device, lost in (source.about.get("lost") or {}).items()
    )
    for (text, then), names in found.items():
        yield GPU_LOST.warning(f"{text} ({', '.join(dict.fromkeys(names))}); {then}")


def _without(cell: CellResult, device: str) -> str:
    """Sums hold of GPUs that are left where another one was lost before the cell, or was not the engine's."""
    if cell.gpu and device not in [f"gpu.{index}" for index in cell.gpu.engine_gpus]:
        return "figures of the GPUs are of the others there"
    return "power, energy and memory of the GPUs are null there"


def _idle(cells: Sequence[CellResult]) -> Iterator[RunWarning]:
    """Engines that bench started for GPUs which ran no kernel: some take the CPU silently. One that answered
    nothing computed nowhere.
    """
    for label in labels(cells):
        mine = [cell for cell in cells if cell.label == label and cell.requests.ok]
        if mine and all(map(_stood_idle, mine)) and (gpu := mine[0].gpu):
            numbers = ", ".join(str(device.index) for device in gpu.devices)
            yield GPU_IDLE.warning(f"{label}: GPU {numbers} ran nothing under any load", backend=label)


def _stood_idle(cell: CellResult) -> bool:
    given = cell.launch in ("process", "compose") and cell.gpu is not None and not _unnamed(cell.telemetry)
    devices = cell.gpu.devices if cell.gpu else ()
    busy = [device.utilisation_pct for device in devices]
    return given and bool(busy) and all(pct is not None and pct.max < IDLE_PCT for pct in busy)


def _gpus_not_known(cells: Sequence[CellResult]) -> Iterator[RunWarning]:
    for label in labels(cells):
        counted = {
            (cell.gpu.engine_gpus, len(cell.gpu.devices))
            for cell in cells
            if cell.label == label and cell.gpu and not cell.gpu.seen_using_them and _unnamed(cell.telemetry)
        }
        for taken, there in sorted(counted):
            if there > 1:
                yield GPUS_NOT_KNOWN.warning(
                    f"{label}: which of the {there} GPUs it used is not known: power, energy and all else of "
                    f"its GPUs are of those that anybody used ({', '.join(map(str, taken))})",
                    backend=label,
                )


def _unnamed(telemetry: TelemetryHealth) -> bool:
    return any(source.about.get("named") is False for source in telemetry.sources.values())


def _gaps(telemetry: TelemetryHealth) -> Iterator[tuple[str, str]]:
    if telemetry.requested and telemetry.problem:
        yield f"nothing was sampled to the end: {telemetry.problem}", f"see {page_address('telemetry')}"
    if (known(telemetry.longest_stall_ms) or 0.0) > MAX_STALL_MS:
        yield "the sampler stood still for more than a second", "its series have no samples of that time"
    for name, source in telemetry.sources.items():
        about = source.about
        if about.get("broken"):
            label = _NAMES.get(name, name)
            named = source.unavailable.startswith(label)
            keeps = "; `nvidia-smi -pm 1` keeps it loaded" if label == "NVML" else ""
            yield (
                source.unavailable if named else f"{label}: {source.unavailable}",
                f"there seems to be a GPU: reload its driver, or reboot{keeps}",
            )
        if "read_hz" in about and name in _NAMES:
            yield (
                f"{_NAMES[name]} answered so slowly that it was read less than half as often as intended",
                "its means hold, short peaks may be missed: a lower --sample-hz takes less of its time",
            )
        if source.failing_since_s is not None:
            how = "stopped answering" if source.reads else "did not answer"
            yield (
                f"{_NAMES.get(name, name)} {how}: {source.last_failure}",
                "its figures are null, or of a part",
            )
        elif known(source.failures):
            yield (
                f"{_NAMES.get(name, name)} often did not answer: {source.last_failure}",
                "its figures are of the other reads",
            )
