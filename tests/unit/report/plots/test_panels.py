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
