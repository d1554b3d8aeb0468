"""Which loads are measured once more."""

import json

import pytest

from harness.doctor import examine as room
from harness.doctor.loads import Load
from harness.doctor.result import as_stored
from tests.factories.doctor import measured
from tests.schemas import fault

LOADS = [Load("concurrency", streams, gap_ms=20, tokens=8, requests=300) for streams in (8, 256)]


@pytest.fixture
def examined(monkeypatch):
    """The examination when the loads are off by these, one measurement after another."""

    def examined(*errors_ms):
        coming = iter(errors_ms)
        monkeypatch.setattr(room, "measure", lambda load, *_: measured(load.kind, load.value, next(coming)))
        found = room.examine(LOADS, lambda line: None)
        assert next(coming, None) is None
        return found

    return examined


def streams(loads):
    return [one["load"]["value"] for one in loads]


def test_a_load_without_faults_is_measured_once(examined):
    found = examined(0.02, 0.02)
    assert found.repeated == ()
    assert found.date.endswith("+00:00")


def test_a_stall_does_not_come_again_and_is_kept(examined):
    found = examined(5.0, 0.02, 0.03)
    assert found.verdict.exact_streams == 256
    document = json.loads(json.dumps(as_stored(found)))
    assert fault(document, "doctor") is None
    assert (streams(document["loads"]), streams(document["repeated"])) == ([8, 256], [8])


def test_a_limit_comes_again_and_counts(examined):
    found = examined(0.02, 5.0, 6.0)
    assert found.verdict.exact_streams == 8
    first, second = found.verdict.limits
    assert first == "256 streams, gap 20 ms: VALID: 6.00 ms off at p99"
    assert second == "256 streams, gap 20 ms: measured twice; the first time VALID: 5.00 ms off at p99"
