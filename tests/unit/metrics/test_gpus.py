"""What two GPUs did, from samples that can be worked out on paper."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from harness.metrics.gpus import describe
from harness.metrics.window import Window
from harness.model import MigInstance, Range, SampledSource
from harness.records.series import Samples, Telemetry
from tests.factories import documents

S = 1_000_000_000
WINDOW = Window(0, 10 * S, "steady")
CARD = {"name": "A", "memory_bytes": 80, "power_limit_w": 300.0, "mig": ()}


def held(*values: float) -> Samples:
    """The first value until the load begins, the others evenly over the window."""
    in_window_ns = np.linspace(0, 10 * S, len(values) - 1).astype(np.int64)
    return Samples(np.concatenate([[-10 * S, -1], in_window_ns]), np.array([values[0], *values]))


def gpus(*mig: Mapping[str, Any], **changes: object) -> dict[str, SampledSource]:
    devices = [{**CARD, "index": 0, "uuid": "u0"}, {**CARD, "index": 3, "uuid": "u3", "mig": mig}]
    about = {"devices": devices, "chosen": "all"}
    return {"nvidia": documents.made(SampledSource, {"about": about, "unavailable": "", **changes})}


def test_each_by_itself_with_what_it_did_before_the_load() -> None:
    series = {
        "gpu.0.power_w": held(60, 100, 200, 300),
        "gpu.0.utilisation_pct": held(5, 90, 90),
        "gpu.0.sm_clock_mhz": held(0, 1000, 1000),
        "gpu.0.throttle_bits": held(0x8, 0x4, 0x1 | 0x40, 0, 0x4),
        "gpu.3.mig.7.memory_used_bytes": held(1, 8, 8),
    }
    found, reason = describe(Telemetry(series), gpus({"number": 7, "uuid": "m7"}), WINDOW)
    assert (found.chosen, reason) == ("all", "")
    first, second = found.devices
    assert (first.index, first.name, first.uuid, first.memory_bytes, first.power_limit_w) == (
        *(0, "A", "u0", 80),
        300.0,
    )
    assert first.power_w == Range(mean=200, max=300)
    assert first.sm_clock_mhz == Range(mean=1000, max=1000)
    assert (first.idle_power_w, first.idle_utilisation_pct) == pytest.approx((60, 5))
    # Of the four samples of the window: 0x1 is an idle GPU, which is no throttling.
    assert first.throttled_share == {"power cap": 0.5, "hardware thermal": 0.25}
    assert first.mig == ()
    assert second.index == 3
    assert second.mig == (MigInstance(number=7, uuid="m7", memory_used_bytes=Range(mean=8, max=8)),)
    assert (second.power_w, second.throttled_share, second.idle_power_w) == (None, None, None)


def test_throttling_that_was_read_for_a_part_of_the_window_is_not_known() -> None:
    bits = Samples(np.arange(-2, 5) * S, np.full(7, 4.0))
    found, _ = describe(Telemetry({"gpu.0.throttle_bits": bits}), gpus(), WINDOW)
    assert found.devices[0].throttled_share is None


def test_the_engines_are_those_where_it_holds_memory() -> None:
    series = {
        "gpu.0.engine_memory_bytes": held(0, 0, 0),
        "gpu.3.engine_memory_bytes": held(0, 40, 60),
        "gpu.0.power_w": held(60, 70, 70),
        "gpu.3.power_w": held(60, 200, 400),
        "gpu.0.utilisation_pct": held(80, 1, 1),
        "gpu.3.utilisation_pct": held(2, 50, 90),
    }
    found, _ = describe(Telemetry(series), gpus(), WINDOW)
    assert (found.engine_gpus, found.seen_using_them) == ((3,), True)
    assert found.engine_memory_bytes == Range(mean=50, max=60)
    assert found.power_w == Range(mean=300, max=400)
    assert found.utilisation_pct == Range(mean=70, max=90)
    assert found.idle_utilisation_pct == pytest.approx(2)


def test_all_that_it_was_given_where_nobody_tells_whose_memory_it_is() -> None:
    series = {
        "gpu.3.engine_memory_bytes": held(0, 40, 60),
        "gpu.0.power_w": held(60, 100, 100),
        "gpu.3.power_w": held(60, 200, 400),
        "gpu.0.utilisation_pct": held(1, 10, 10),
        "gpu.3.utilisation_pct": held(4, 50, 90),
        "gpu.0.memory_used_bytes": held(0, 1, 1),
    }
    found, _ = describe(Telemetry({**series, "gpu.3.engine_memory_bytes": held(0, 0, 0)}), gpus(), WINDOW)
    assert (found.engine_gpus, found.seen_using_them) == ((0, 3), False)
    assert found.power_w == Range(mean=400, max=500)  # a sum
    assert found.utilisation_pct == Range(mean=40, max=50)  # a mean of the GPUs
    assert found.idle_utilisation_pct == pytest.approx(4)
    assert found.memory_used_bytes is None  # one of the two was never read
    # One that is seen to hold memory is used, whatever is not known of the others.
    assert describe(Telemetry(series), gpus(), WINDOW)[0].engine_gpus == (3,)


@pytest.mark.parametrize(
    ("busy_pct", "held_bytes", "used"),
    [
        (1, 1 << 29, (3,)),
        (1, (1 << 30) + 1, (0, 3)),  # memory of somebody
        (5, 1 << 29, (0, 3)),
    ],
)
def test_a_gpu_that_lay_idle_and_empty_is_not_the_engine_s_though_nobody_tells(
    busy_pct: float, held_bytes: int, used: tuple[int, ...]
) -> None:
    """Eight GPUs, of which an engine in a container has one: its energy is not that of eight."""
    series = {
        "gpu.0.power_w": held(60, 70, 70),
        "gpu.3.power_w": held(60, 200, 400),
        "gpu.0.utilisation_pct": held(0, busy_pct, busy_pct),
        "gpu.3.utilisation_pct": held(0, 90, 90),
        "gpu.0.memory_used_bytes": held(0, held_bytes, held_bytes),
        "gpu.3.memory_used_bytes": held(0, 70 << 30, 70 << 30),
    }
    found, _ = describe(Telemetry(series), gpus(), WINDOW)
    assert (found.engine_gpus, found.seen_using_them) == (used, False)
    assert found.power_w.mean == (300 if used == (3,) else 370)
    idle = {name: samples for name, samples in series.items() if name.startswith("gpu.0.")}
    idle |= {name.replace("gpu.0.", "gpu.3."): samples for name, samples in idle.items()}
    found, _ = describe(Telemetry(idle), gpus(), WINDOW)
    assert found.engine_gpus == (0, 3), "no one is more likely than another"


@pytest.mark.parametrize(("busy_pct", "used"), [(90, (0, 3)), (1, ())])
def test_gpus_that_compute_and_list_no_process_are_not_known_to_be_somebody_else_s(busy_pct, used) -> None:
    """Some containers hide the processes of the GPU, their own too."""
    nobody = {
        f"gpu.{index}.{name}_memory_bytes": held(0, 0, 0) for index in (0, 3) for name in ("engine", "other")
    }
    busy = {"gpu.0.utilisation_pct": held(0, 0, 0), "gpu.3.utilisation_pct": held(0, busy_pct, busy_pct)}
    found, _ = describe(Telemetry(nobody | busy), gpus(), WINDOW)
    assert (found.engine_gpus, found.seen_using_them) == (used, not used)
    assert found.engine_memory_bytes is found.other_memory_bytes is None


def test_a_gpu_of_the_engine_that_was_lost_on_the_way_stays_in_its_sums() -> None:
    """The sum of what is left would be too small, so there is none: of power, energy, or memory."""
    lost = Samples(np.array([-2, -1, 0, 1]) * S, np.array([40.0] * 4))
    series = {
        **{f"gpu.{index}.engine_memory_bytes": samples for index, samples in ((0, held(40, 40)), (3, lost))},
        **{f"gpu.{index}.power_w": samples for index, samples in ((0, held(300, 300)), (3, lost))},
    }
    found, _ = describe(Telemetry(series), gpus(), WINDOW)
    assert (found.engine_gpus, found.seen_using_them) == ((0, 3), False)
    assert found.power_w is found.engine_memory_bytes is None


def test_no_gpu_and_why() -> None:
    assert describe(Telemetry(), {}, WINDOW) == (
        None,
        "not sampled: the engine runs on another machine, or sampling is off",
    )
    broken = gpus(unavailable="no driver")
    assert describe(Telemetry(), broken, WINDOW) == (None, "no driver")
    amd = {"amd": documents.made(SampledSource, {"unavailable": "no amdsmi", "about": {}})}
    assert describe(Telemetry(), broken | amd, WINDOW) == (None, "no driver; no amdsmi")
    faulty = gpus(unavailable="version mismatch", about={"broken": True})
    assert describe(Telemetry(), faulty | amd, WINDOW) == (None, "version mismatch")
    silent = gpus(about={"chosen": "all"})
    assert describe(Telemetry(), silent, WINDOW) == (None, "the source does not say which GPUs there are")
    found, _ = describe(Telemetry(), broken | {"amd": gpus()["nvidia"]}, WINDOW)
    assert [device.index for device in found.devices] == [0, 3]
