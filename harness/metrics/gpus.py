"""The GPUs in the measured window, each on its own and the engine's together."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from harness.metrics import energy, series
from harness.metrics.window import Window
from harness.model import Gpu, GpuDevice, MigInstance, Range, SampledSource
from harness.model.numbers import GIB
from harness.records.series import Samples, Telemetry

# nvmlClocksEventReasons of NVML. Clocks of an idle GPU, and clocks set on purpose, are not throttling.
THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
}
_OWNED = ("engine_memory_bytes", "other_memory_bytes")
_COMPUTED_PCT = 5.0  # of the time: a screen takes less
_EMPTY_BYTES = GIB  # a driver keeps about half of that for itself
_SUMMED = ("memory_used_bytes", *_OWNED, "power_w")
_AVERAGED = (
    "utilisation_pct",
    "memory_utilisation_pct",
    "sm_active_pct",
    "tensor_active_pct",
    "dram_active_pct",
)
_OWN = (
    "sm_clock_mhz",
    "memory_clock_mhz",
    "temperature_c",
    "pcie_sent_bytes_per_s",
    "pcie_received_bytes_per_s",
)


def describe(
    telemetry: Telemetry, sources: Mapping[str, SampledSource], window: Window
) -> tuple[Gpu | None, str]:
    """The `gpu` object, or the reason there is none.

    The engine's GPUs are those on which its processes held memory at any sample. Where that is not known,
    they are those it was given, less the ones that lay idle and empty.
    """
    source, reason = _read(sources)
    if source is None:
        return None, reason
    telemetry = _with_owners(telemetry, [device["index"] for device in source.about["devices"]], window)
    devices = [_device(telemetry, device, window) for device in source.about["devices"]]
    # By any sample: a GPU that was lost on the way stays in the sums.
    held = [telemetry.get(f"gpu.{device.index}.engine_memory_bytes").values.any() for device in devices]
    seen = list(compress(devices, held))
    known = all(device.engine_memory_bytes is not None for device in devices)
    used = seen if seen or known else list(filter(_in_use, devices)) or devices
    idle = [pct for device in used if (pct := device.idle_utilisation_pct) is not None]
    together = {
        **{name: _together(used, name, expected=1) for name in _SUMMED},
        **{name: _together(used, name, expected=len(used)) for name in _AVERAGED},
    }
    return Gpu(
        chosen=source.about["chosen"],
        engine_gpus=tuple(device.index for device in used),
        seen_using_them=known,
        idle_utilisation_pct=max(idle, default=None),
        devices=tuple(devices),
        **together,
    ), ""


def _in_use(device: GpuDevice) -> bool:
    """Whether anybody may have used it: what was not read speaks for it."""
    held, busy = device.memory_used_bytes, device.utilisation_pct
    return held is None or held.max > _EMPTY_BYTES or (busy is not None and busy.mean >= _COMPUTED_PCT)


def _with_owners(telemetry: Telemetry, gpus: Sequence[int], window: Window) -> Telemetry:
    """Leaves out whose memory it is where a GPU computed and none lists a process: it may be hidden here."""
    listed = any(telemetry.get(f"gpu.{gpu}.{name}").values.any() for gpu in gpus for name in _OWNED)
    busy = [series.mean(telemetry.get(f"gpu.{gpu}.utilisation_pct"), window) or 0.0 for gpu in gpus]
    if listed or max(busy, default=0.0) < _COMPUTED_PCT:
        return telemetry
    return Telemetry({name: found for name, found in telemetry.series.items() if not name.endswith(_OWNED)})


def _read(sources: Mapping[str, SampledSource]) -> tuple[SampledSource | None, str]:
    asked = {name: sources[name] for name in ("nvidia", "amd") if name in sources}
    for source in asked.values():
        if not source.unavailable and {"devices", "chosen"} <= source.about.keys():
            return source, ""
    # A GPU that cannot be read is the reason; that there is none of another vendor is none.
    faulty = [source for source in asked.values() if source.about.get("broken")]
    reasons = [
        source.unavailable or "the source does not say which GPUs there are"
        for source in faulty or asked.values()
    ]
    return None, "; ".join(reasons) or "not sampled: the engine runs on another machine, or sampling is off"


# `about`: as NVML's or AMD's source reported it of one GPU.
def _device(telemetry: Telemetry, about: Mapping[str, Any], window: Window) -> GpuDevice:
    name = f"gpu.{about['index']}"

    def gauge(series_name: str) -> Range | None:
        return series.describe(telemetry.get(f"{name}.{series_name}"), window)

    return GpuDevice(
        index=about["index"],
        name=about["name"],
        uuid=about["uuid"],
        memory_bytes=about["memory_bytes"],
        power_limit_w=about["power_limit_w"],
        **{gauge_name: gauge(gauge_name) for gauge_name in (*_SUMMED, *_AVERAGED, *_OWN)},
        idle_power_w=energy.idle_watts(telemetry, name),
        idle_utilisation_pct=energy.idle_mean(telemetry, f"{name}.utilisation_pct"),
        throttled_share=_throttled(telemetry.get(f"{name}.throttle_bits"), window),
        mig=tuple(
            MigInstance(
                number=instance["number"],
                uuid=instance["uuid"],
                memory_used_bytes=gauge(f"mig.{instance['number']}.memory_used_bytes"),
            )
            for instance in about["mig"]
        ),
    )


def _throttled(samples: Samples, window: Window) -> dict[str, float] | None:
    """The share of samples with each reason; None if it was not read over the window."""
    bits = samples.between(window.start_ns, window.end_ns).values
    if not len(bits) or series.describe(samples, window) is None:
        return None
    codes = bits.astype(np.int64)
    shares = {name: float(np.mean(codes & bit != 0)) for bit, name in THROTTLE_REASONS.items()}
    return {name: share for name, share in shares.items() if share}


def _together(devices: Sequence[GpuDevice], name: str, expected: int) -> Range | None:
    ranges: list[Range] = [held for device in devices if (held := getattr(device, name)) is not None]
    if not ranges or len(ranges) < len(devices):
        return None
    return Range(
        mean=sum(reading.mean for reading in ranges) / expected,
        max=sum(reading.max for reading in ranges) / expected,
    )
