"""A run that is stopped for a while in the midst of its load: what it names, and what it measures again."""

import pytest

from tests.integration.frozen import Frozen


@pytest.mark.long
def test_a_machine_that_stood_still_is_named_and_the_cell_measured_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Frozen(tmp_path).strike("all", seconds=1.5, requests=72)
    (reason,) = [one for one in found.struck.validity.reasons if one.code == "machine-stalled"]
    assert reason.verdict == "INVALID"
    assert "load generator and sampler stood still" in reason.measured
    assert found.struck.standstill.longest_ms > 1300
    assert found.again
    assert "measured again: machine-stalled" in found.said
    assert found.kept.standstill.longest_ms < 1300
    assert "engine-stalled" not in found.warnings


@pytest.mark.long
def test_an_engine_that_stood_still_is_named_and_its_cell_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Frozen(tmp_path).strike("engine", seconds=1.5, requests=48)
    assert found.struck.engine_stall.lasted_ms > 1200
    assert "engine-stalled" in found.warnings
    assert not {"machine-stalled", "client-stalled"} & {one.code for one in found.struck.validity.reasons}
    assert not found.again
