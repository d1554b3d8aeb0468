"""Energy of a cell from counters where there are some, else from power; and what was used above idle.

Idle is the started engine without a request, in the seconds before the first one.
"""

from collections.abc import Iterable, Mapping

from harness.metrics import series
from harness.metrics.window import Window
from harness.model import Energy
from harness.model.numbers import quotient
from harness.records.series import Telemetry

# Two seconds, less the last samples before the load: power that a driver averages may already be of it.
_IDLE = Window(-2_000_000_000, -200_000_000, "whole")
_EVER_NS = -(2**62)


def watts(telemetry: Telemetry, device: str, window: Window) -> float | None:
    """Mean power of `gpu.0` or `cpu.0` over the window.

    A GPU's counter is exact but slow to read. Its power is read more often, so the power gives the shape
    and the counter the size. A counter that stands still is not supported: nothing works without power.
    """
    counter, power = telemetry.get(f"{device}.energy_j"), telemetry.get(f"{device}.power_w")
    mean_w = series.mean(power, window)
    if mean_w is None:
        return series.rate(counter, window) or None
    inside = counter.between(window.start_ns, window.end_ns).at_ns
    if len(inside) < 2:
        return mean_w
    between = Window(int(inside[0]), int(inside[-1]), "whole")
    counted_w, shown_w = series.rate(counter, between), series.mean(power, between)
    return mean_w * counted_w / shown_w if counted_w and shown_w else mean_w


def idle_watts(telemetry: Telemetry, device: str) -> float | None:
    return watts(_before_load(telemetry), device, _IDLE)


def idle_mean(telemetry: Telemetry, name: str) -> float | None:
    return series.mean(_before_load(telemetry).get(name), _IDLE)


def _before_load(telemetry: Telemetry) -> Telemetry:
    """Leaves out what came after the first request: interpolated towards it, idle would be part load."""
    return telemetry.between(_EVER_NS, 0)


def total(values: Iterable[float | None]) -> float | None:
    """The sum; None if one part is unknown, since a sum without it would be too small."""
    parts = list(values)
    return sum(value for value in parts if value is not None) if parts and None not in parts else None


def describe(
    telemetry: Telemetry, gpus: Iterable[int], rates: Mapping[str, float | None], window: Window
) -> tuple[Energy | None, str]:
    """The `energy` object, or why there is none: of the engine's GPUs if it has some, else of the CPUs.

    Both parts are given where both are measured. The rest of the machine (fans, losses) is in neither.
    """
    gpu_devices = [f"gpu.{index}" for index in gpus]
    packages = sorted({name.rpartition(".")[0] for name in telemetry.series if name.startswith("cpu.")})
    parts: dict[str, float | None] = {}
    for part, devices in (("gpu", gpu_devices), ("cpu", packages)):
        parts[f"{part}_w"] = total(watts(telemetry, device, window) for device in devices)
        parts[f"{part}_idle_w"] = total(idle_watts(telemetry, device) for device in devices)
    scope = "gpu" if gpu_devices else "cpu"
    busy_w, idle_w = parts[f"{scope}_w"], parts[f"{scope}_idle_w"]
    if busy_w is None:
        return (
            None,
            f"no energy counter or power of the {'GPUs' if gpu_devices else 'CPU packages'} over the window",
        )
    tokens_per_s, requests_per_s = rates["output_tokens_per_s"], rates["requests_per_s"]
    # Power that does not rise under load was none of an idle engine.
    above_w = busy_w - idle_w if idle_w is not None and busy_w > idle_w else None
    return Energy(
        scope=scope,
        **parts,
        window_s=window.seconds,
        joules=busy_w * window.seconds,
        joules_per_output_token=quotient(busy_w, tokens_per_s),
        joules_per_output_token_above_idle=quotient(above_w, tokens_per_s),
        joules_per_request=quotient(busy_w, requests_per_s),
        output_tokens_per_s_per_watt=quotient(tokens_per_s, busy_w),
    ), ""
