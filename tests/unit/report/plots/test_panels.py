"""Requests of a timeline, and the curves below them."""

from types import SimpleNamespace

import numpy as np

from harness.records.series import Samples, Telemetry
from harness.report.plots.panels import POINTS, panels
from harness.report.plots.timeline import DECODING, WAITING, draw_in_flight
from tests.factories.recorded import records
from tests.factories.summaries import cell

TWO = Samples(np.array([0, 1_000_000_000]), np.array([1.0, 2.0]))


def test_the_curves_of_a_panel_differ_without_colour():
    (queue,) = panels(cell(), Telemetry({"engine.running": TWO, "engine.waiting": TWO}), 2.0)
    assert len({repr(curve.dash) for curve in queue.curves}) == 2


def test_one_sample_is_no_curve():
    assert not list(panels(cell(), Telemetry({"engine.kv_use": TWO.between(0, 1)}), 2.0))


def test_memory_that_grows_is_seen():
    samples = Samples(TWO.at_ns, TWO.values * 2**30)
    (memory,) = panels(cell(), Telemetry({"server.rss_bytes": samples}), 2.0)
    assert memory.curves[0].values.tolist() == [1.0, 2.0]
    assert memory.words == "engine's memory up to 2.00 GiB"


def test_a_sum_of_many_gpus_ends_where_one_of_them_is_lost():
    """What is left draws less, and what the lost one draws is not known."""
    at_ns = np.arange(4) * 1_000_000_000
    kept, lost = Samples(at_ns, np.full(4, 300.0)), Samples(at_ns[:2], np.full(2, 300.0))
    series = {f"gpu.{index}.power_w": lost if index == 2 else kept for index in range(4)}
    (power,) = panels(cell(gpu={"engine_gpus": [0, 1, 2, 3]}), Telemetry(series), 4.0)
    (together,) = power.curves
    assert (together.seconds.tolist(), together.values.tolist()) == ([0, 1], [1200, 1200])


def test_a_long_curve_is_drawn_by_means_and_its_words_name_its_peak():
    count = 2 * POINTS
    peak = np.where(np.arange(count) == 7, 4.0, 0.0)
    samples = Samples(np.arange(count) * 500_000_000, peak)
    (queue,) = panels(cell(), Telemetry({"engine.waiting": samples}), count / 2)
    (drawn,) = queue.curves
    assert (len(drawn.seconds), drawn.values.max(), drawn.values.mean()) == (POINTS, 2.0, peak.mean())
    assert queue.words == "waiting up to 4.00"


def test_many_requests_are_drawn_by_how_many_were_in_flight():
    """One waits for a second and is answered within the next one, in which another takes half a second."""
    rows = records({"intended": 0, "texts": [1000, 2000]}, {"intended": 1000, "texts": [1250, 1500]})
    tops = []
    axes = SimpleNamespace(stairs=lambda top, *_, **__: tops.append(top.tolist()), set_ylim=lambda *_: None)
    used = draw_in_flight(axes, rows.requests, np.array([0.0, 1.0, 2.0]), of_text=True)
    assert used == [WAITING, DECODING]
    assert tops == [[1.0, 0.25], [1.0, 1.5]]
