"""Curves below the requests of a timeline."""

import numpy as np

from harness.records.series import Samples, Telemetry
from harness.report.plots.panels import panels
from tests.factories.summaries import cell

TWO = Samples(np.array([0, 1_000_000_000]), np.array([1.0, 2.0]))


def test_the_curves_of_a_panel_differ_without_colour():
    (queue,) = panels(cell(), Telemetry({"engine.running": TWO, "engine.waiting": TWO}), 2.0)
    assert len({repr(curve.dash) for curve in queue.curves}) == 2


def test_one_sample_is_no_curve():
    assert not list(panels(cell(), Telemetry({"engine.kv_use": TWO.between(0, 1)}), 2.0))


def test_a_sum_of_many_gpus_ends_where_one_of_them_is_lost():
    """What is left draws less, and what the lost one draws is not known."""
    at_ns = np.arange(4) * 1_000_000_000
    kept, lost = Samples(at_ns, np.full(4, 300.0)), Samples(at_ns[:2], np.full(2, 300.0))
    series = {f"gpu.{index}.power_w": lost if index == 2 else kept for index in range(4)}
    (power,) = panels(cell(gpu={"engine_gpus": [0, 1, 2, 3]}), Telemetry(series), 4.0)
    (together,) = power.curves
    assert (together.seconds.tolist(), together.values.tolist()) == ([0, 1], [1200, 1200])
