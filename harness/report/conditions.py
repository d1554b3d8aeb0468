"""What a manifest says, in lines: the machine in a few words, everything flat, and what differs between backends."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.report.plots.style import Caption
from harness.report.text import counted, plain
from harness.report.view import Json


def caption(summary: Json, manifest: Json) -> Caption:
    model = manifest.get("model") or summary.get("model") or {}
    return Caption(
        scenario=plain(summary.get("scenario") or ""),
        model=plain(model.get("title") or model.get("name") or ""),
        machine=machine(manifest.get("host") or {}),
        simulated=bool(summary.get("simulated")),
    )


def machine(host: Json) -> str:
    """The part that sets the speed: the GPUs where there are any, else the CPU."""
    gpus = host.get("gpus") or []
    if gpus:
        return plain(", ".join(f"{gpus.count(name)}× {name}" for name in dict.fromkeys(gpus)))
    cpus = host.get("cpus_usable") or host.get("cpus")
    parts = [host.get("cpu") or host.get("machine"), counted(cpus, "core") if cpus else None]
    return plain(", ".join(filter(None, parts)))
