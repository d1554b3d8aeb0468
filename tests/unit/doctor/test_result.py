"""The result that is kept, and what runs are told from it."""

import json

import pytest
from msgspec.structs import replace

from harness.doctor import result
from harness.doctor.verdict import conclude
from harness.errors import StorageError
from harness.model import DoctorResult, HostFacts
from harness.plan import LoadPoint
from harness.run.measure import workers
from tests.factories import documents
from tests.factories.doctor import rate, streams

pytestmark = pytest.mark.usefixtures("cache")

HOST = HostFacts(machine="x86_64", cpu="a CPU", cpus_usable=2, kernel="6.1")


def store_verdict(**changes):
    verdict = conclude([streams(8), streams(1024), rate(500)], [], [])
    result.store(documents.made(DoctorResult, host=HOST, verdict=replace(verdict, **changes)))


def test_a_run_within_what_was_found_needs_no_advice():
    store_verdict()
    assert result.advice("concurrency", 1024, HOST) is None
    assert result.advice("rate", 499.5, HOST) is None


def test_a_run_beyond_it_is_told_how_far_it_goes():
    store_verdict(exact_streams=256)
    assert result.advice("concurrency", 2000, HOST) == (
        "2,000 streams asked: `bench doctor` found this client exact to 1 ms "
        "only up to 256 streams (of 1,024 tried)"
    )
    assert result.advice("rate", 600, HOST).endswith("only up to 500/s (the most it tried)")
    assert result.advice("rate", 500.00001, HOST).startswith("500.00001/s asked: ")


def test_a_machine_that_was_good_for_nothing_says_so():
    store_verdict(on_time_per_s=0, exact_streams=0)
    assert result.advice("concurrency", 1, HOST).startswith("1 stream asked: ")
    assert result.advice("rate", 5, HOST) == (
        "5/s asked: `bench doctor` did not find sending on time to 1 ms at any load on this machine"
    )


@pytest.mark.parametrize("key", ["machine", "cpu", "cpus_usable", "kernel"])
def test_a_result_of_another_machine_does_not_count(key):
    store_verdict()
    assert "not known" in result.advice("concurrency", 1, replace(HOST, **{key: "other"}))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 0}', '{"schema": 1, "host": {}}'])
def test_a_file_that_cannot_be_used_counts_as_none(cache, text):
    assert "`bench doctor` finds out" in result.advice("concurrency", 1, HOST)
    cache.mkdir()
    (cache / "doctor.json").write_text(text)
    assert "`bench doctor` finds out" in result.advice("concurrency", 1, HOST)


def test_a_result_that_cannot_be_kept_says_where_and_what_to_do(cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="could not be stored") as caught:
        store_verdict()
    assert "BENCH_CACHE" in caught.value.hint


def test_the_stored_document_is_read_back_whole(cache):
    store_verdict()
    assert json.loads((cache / "doctor.json").read_text())["verdict"]["exact_streams"] == 1024


@pytest.fixture
def sixteen_cores(monkeypatch):
    monkeypatch.setattr("harness.load.sharding.usable_cpus", lambda: 16)
    monkeypatch.setattr(workers.machine, "host_facts", lambda: HOST)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (LoadPoint("concurrency", 64), workers.Workers(1, "doctor", 2048)),
        (LoadPoint("concurrency", 5000), workers.Workers(3, "doctor", 2048)),
        (LoadPoint("concurrency", 1_000_000), workers.Workers(8, "doctor", 2048)),  # every second core
        (LoadPoint("rate", 1001.0), workers.Workers(2, "doctor", 1000)),
        (LoadPoint("trace", 1.0), workers.Workers(None, "constants")),
    ],
)
def test_a_run_takes_as_many_workers_as_the_calibration_says(sixteen_cores, point, expected):
    store_verdict()
    assert workers.choose_workers(None, point) == expected
    assert workers.choose_workers(5, point) == workers.Workers(5, "given")


def test_without_a_calibration_the_load_room_decides(sixteen_cores):
    point = LoadPoint("concurrency", 5000)
    assert workers.choose_workers(None, point) == workers.Workers(None, "constants")
    for useless in ({"streams_per_worker": 0}, {"exact_streams": 8}):
        store_verdict(**useless)
        assert workers.choose_workers(None, point).source == "constants"
