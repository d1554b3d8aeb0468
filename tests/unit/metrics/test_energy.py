"""Mean power from a counter that is read once a second and power that is read ten times a second."""

import numpy as np
import pytest

from harness.metrics.energy import idle_mean, idle_watts, watts
from harness.metrics.window import Window
from harness.records.series import Samples, Telemetry

S = 1_000_000_000


def series(hz, value, start_s=-3.0, end_s=8.0):
    at_s = np.arange(start_s, end_s, 1 / hz)
    return Samples((at_s * S).astype(np.int64), np.array([value(second) for second in at_s]))


def burst_w(second):
    """500 W from 0.5 to 2.5 s, else 100 W."""
    return 500.0 if 0.5 <= second < 2.5 else 100.0


def used_j(second):
    return 100.0 * (second + 3) + 400.0 * float(np.clip(second - 0.5, 0, 2))


def gpu(power, counter):
    found = {"gpu.0.power_w": power, "gpu.0.energy_j": counter}
    return Telemetry({name: samples for name, samples in found.items() if samples is not None})


WINDOW = Window(0, 3 * S, "whole")
TRUTH_W = (3 * 100 + 2 * 400) / 3


def test_a_slow_counter_says_how_much_and_power_says_when():
    counter = series(1, used_j, start_s=-2.6)
    assert watts(gpu(series(10, burst_w), counter), "gpu.0", WINDOW) == pytest.approx(TRUTH_W, rel=0.03)


def test_power_that_shows_too_little_is_scaled_to_the_counter():
    low = series(10, lambda second: 0.8 * burst_w(second))
    assert watts(gpu(low, series(1, used_j)), "gpu.0", WINDOW) == pytest.approx(TRUTH_W, rel=0.03)


def test_a_counter_with_one_reading_in_the_window_does_not_borrow_from_outside():
    """Idle, just before the load: what the counter says of the load is not idle."""
    idle = Window(int(-1.2 * S), int(-0.2 * S), "whole")
    counter = series(1, used_j, start_s=-2.6)
    assert watts(gpu(series(10, burst_w), counter), "gpu.0", idle) == pytest.approx(100.0)


@pytest.mark.parametrize(("power", "counter"), [(None, series(4, used_j)), (series(10, burst_w), None)])
def test_one_of_both_is_enough(power, counter):
    assert watts(gpu(power, counter), "gpu.0", WINDOW) == pytest.approx(TRUTH_W, rel=0.05)


def test_a_counter_that_stands_still_is_no_energy_of_zero():
    still = series(1, lambda _: 0.0)
    assert watts(gpu(series(10, burst_w), still), "gpu.0", WINDOW) == pytest.approx(TRUTH_W, rel=0.03)
    assert watts(gpu(None, still), "gpu.0", WINDOW) is None


def test_a_gpu_that_shows_no_power_at_all_has_its_power_of_zero():
    assert watts(gpu(series(10, lambda _: 0.0), series(1, lambda _: 5.0)), "gpu.0", WINDOW) == 0.0
    assert watts(gpu(None, None), "gpu.0", WINDOW) is None


@pytest.mark.parametrize("hz", [0.4, 1, 2, 4, 10])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.6, 0.9])
def test_idle_is_never_interpolated_towards_the_load(hz, phase):
    """100 W until the load begins, then 500 W: read seldom, idle was up to four times as much."""

    def load_j(second):
        return 100.0 * (second + 10) + 400.0 * max(second, 0.0)

    start_s = -3 - phase / hz
    counter = series(hz, load_j, start_s)
    busy = series(hz, lambda second: 0.0 if second <= 0 else 100.0, start_s)
    assert idle_watts(gpu(None, counter), "gpu.0") in (None, pytest.approx(100.0))
    assert idle_mean(Telemetry({"gpu.0.utilisation_pct": busy}), "gpu.0.utilisation_pct") in (None, 0.0)


@pytest.mark.parametrize("hz", [4, 10])
def test_idle_is_known_at_the_rates_of_the_sources(hz):
    assert idle_watts(gpu(None, series(hz, used_j)), "gpu.0") == pytest.approx(100.0)
