"""A backend under two labels: how far apart, what could be found, where it is kept."""

import pytest

from harness.model import HostFacts
from harness.run.setup import noise
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec import files
from harness.verdicts import Rules, compare
from tests.factories.documents import changed
from tests.unit.verdicts.test_pairs import NOISE, cells

METRIC = "ttft_ms.p50"
RULES = Rules(primary=METRIC, metrics=(METRIC,))
HOST = HostFacts(machine="x86_64", cpu="EPYC", cpus_usable=2)


def found():
    measured = [*cells("vllm#a", 101), *cells("vllm#b", 100, noise=-NOISE), *cells("tgi#a", 300)]
    return compare(measured, RULES).noise


def test_only_a_backend_with_itself_is_noise():
    (one,) = found()
    assert (one.backend, one.metric, one.verdict) == ("vllm", METRIC, "same")
    assert one.difference == pytest.approx(0.01, abs=1e-4)
    assert one.smallest_detectable > 0.02
    assert compare([*cells("vllm", 101), *cells("tgi", 100)], RULES).noise == ()


def test_the_floor_is_the_outer_end_of_the_interval():
    (one,) = found()
    low, _, high = one.ratio
    assert one.difference_upper == pytest.approx(max(high, 1 / low) - 1)
    assert one.difference_upper > one.difference


def key(*, host=HOST, version="0.1", **options):
    prepared = prepare(RunOptions("fixed-length", "truth", **options))
    return noise.key(host, prepared, prepared.backends[0], version)


def test_floors_are_kept_by_their_key(cache):
    assert noise.stored("one") == {}
    noise.store({"one": found()})
    assert noise.stored("one")["c4"][METRIC] == pytest.approx(found()[0].difference_upper)
    noise.store({"two": found(), "one": [changed(found()[0], metric="e2e_ms.p50", difference_upper=0.5)]})
    assert set(noise.stored("one")["c4"]) == {METRIC, "e2e_ms.p50"}
    assert METRIC in noise.stored("two")["c4"]
    assert noise.stored("three") == {}


def test_a_floor_holds_for_the_same_values_engine_version_and_machine_only(cache):
    usual = key()
    assert key(overrides={"load.concurrency": [7]}) == usual  # kept by load point
    assert key(repeats=9) == usual
    others = {
        key(overrides={"prompts.output_tokens": 3}),
        key(overrides={"load.requests": 99}),
        key(engine_values={"ttft_ms": "7"}),
        key(version="0.2"),
        key(version=None),
        key(host=changed(HOST, cpu="Xeon")),
        key(host=changed(HOST, cpu_quota=1.5)),
    }
    assert len(others - {usual}) == 7


def test_a_machine_without_a_limit_of_cpu_time_is_the_one_that_it_was_before_limits_were_read():
    assert noise.host_key(HOST) == files.fingerprint(
        {"machine": "x86_64", "cpu": "EPYC", "cpu_features": None, "cpus_usable": 2, "gpus": None}
    )


def test_a_damaged_file_is_no_floor(cache):
    cache.mkdir()
    noise.path().write_text("{")
    assert noise.stored("one") == {}
