"""Samples to figures: what is covered counts, what is not is unknown."""

import numpy as np
import pytest

from harness.metrics import series
from harness.metrics.window import Window
from harness.model import as_json
from harness.records.series import Samples, Telemetry, falls, unbroken
from harness.store import RunFolder
from tests.factories.recorded import facts, records

S = 1_000_000_000
WINDOW = Window(0, 10 * S, "steady")


def sampled(*pairs):
    """Each pair: (seconds, value)."""
    return Samples(np.array([int(s * S) for s, _ in pairs]), np.array([float(v) for _, v in pairs]))


def test_a_gauge_is_averaged_over_time_not_over_samples():
    uneven = sampled((0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 10), (10, 10))
    assert as_json(series.describe(uneven, WINDOW)) == {"mean": pytest.approx(4.5), "max": 10}


def test_what_lies_before_and_after_the_window_is_interpolated_at_its_ends():
    assert series.mean(sampled((-5, 0), (5, 10), (15, 20)), WINDOW) == pytest.approx(10)


def test_samples_before_the_load_and_after_it_alone_say_nothing_of_it():
    """With a low `--sample-hz` an engine is read when it is idle alone."""
    around = sampled((-3.4, 0), (-3.3, 0), (10.4, 0))
    assert series.describe(around, WINDOW) is series.rate(around, WINDOW) is None
    assert series.describe(sampled((-3.4, 0), (1, 4), (10.4, 0)), WINDOW) is not None


def test_a_counter_gives_its_rate_and_a_restart_loses_nothing_seen():
    assert series.rate(sampled((0, 100), (5, 150), (10, 200)), WINDOW) == pytest.approx(10)
    assert series.rate(sampled((0, 100), (4, 140), (6, 20), (10, 60)), WINDOW) == pytest.approx(10)
    assert unbroken(np.array([5.0, 9.0, 2.0, 4.0])).tolist() == [5, 9, 11, 13]
    rounded = np.array([3103.93, 3104.0, 3104.0 - 4.5e-13, 3104.5])
    assert not falls(rounded).any()
    assert unbroken(rounded)[-1] == pytest.approx(3104.5)
    assert falls(np.array([5.0, 9.0, 2.0, 4.0, 1.0])).tolist() == [False, True, False, True]


def test_a_source_that_died_early_gives_no_figure():
    assert series.describe(sampled((0, 1), (7, 1)), WINDOW) is None
    assert series.rate(sampled((0, 1), (7, 1)), WINDOW) is None
    assert series.describe(sampled((0, 1), (9, 1)), WINDOW) is not None
    assert series.describe(sampled(), WINDOW) is None
    assert series.rate(sampled((5, 1)), WINDOW) is None


def test_a_gauge_whose_source_failed_in_between_gives_no_figure_and_a_counter_does():
    """Ten samples a second, none of them between 1 and 9 s, or 7 and 8 s."""

    def without(begin, end):
        return sampled(*((i / 10, i) for i in range(-20, 120) if not begin * 10 < i < end * 10))

    assert series.describe(without(1, 9), WINDOW) is None
    assert series.rate(without(1, 9), WINDOW) == pytest.approx(10)
    assert series.mean(without(7, 8), WINDOW) == pytest.approx(50)


def test_a_source_that_is_slower_under_load_than_before_it_has_its_figure():
    """Four samples a second for 3 s of idle, then one each 1.3 s."""
    idle = [(-3 + i / 4, 0) for i in range(12)]
    assert series.mean(sampled(*idle, *((1.3 * i, 4) for i in range(9))), WINDOW) == pytest.approx(4)


def test_a_window_that_lies_between_two_samples_has_no_figure_of_a_gauge():
    seldom = sampled((-3, 1), (-2, 1), (-1, 1), (11, 9), (12, 9), (13, 9))
    assert series.describe(seldom, WINDOW) is None


def test_samples_come_back_as_they_were(tmp_path):
    folder = RunFolder.create(tmp_path, "demo")
    (folder.cell_path("000-x")).mkdir()
    assert folder.read_telemetry("000-x").series == {}
    kept = Telemetry({"gpu.0.power_w": sampled((-1, 50), (2, 300.5)), "engine.running": sampled((0.5, 4))})
    folder.write_cell(records({"texts": [1]}), facts(cell="000-x"), kept)
    back = folder.read_telemetry("000-x")
    assert list(back.series) == list(kept.series)
    for name, samples in kept.series.items():
        assert back.get(name).at_ns.tolist() == samples.at_ns.tolist()
        assert back.get(name).values.tolist() == samples.values.tolist()
    folder.write_cell(records({"texts": [1]}), facts(cell="001-x"), Telemetry())
    assert not (folder.cell_path("001-x") / "telemetry.parquet").exists()
    assert folder.read_telemetry("001-x").series == {}


def test_names_are_taken_apart():
    made = Telemetry({"server.process.12.cpu_s": sampled((0, 1)), "server.cpu_s": sampled((0, 1))})
    assert [name for name, _ in made.matching("server.process", "cpu_s")] == ["12"]
