"""What an engine counted over a cell: exact ends, restarts in between, and an engine that counts late."""

import socket
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from harness.model import HistogramIncrease
from harness.records.series import Samples, Telemetry
from harness.sampling import machine
from harness.sampling.counter_deltas import (
    added,
    added_histograms,
    counted,
    histogram_increase,
    idle,
    settled,
)
from harness.sampling.sources.visible import AMD, visible

NAMES = frozenset({"output_tokens"})


S = 1_000_000_000


def sampled(*values):
    """A sample each second, from the first one on."""
    at_ns = (1 + np.arange(len(values))) * S
    return Telemetry({"engine.output_tokens": Samples(at_ns, np.array(values, float))})


def test_the_ends_decide_and_the_samples_between_them_change_nothing():
    before, after = {"output_tokens": 100.0, "running": 1.0}, {"output_tokens": 160.0, "running": 0.0}
    assert counted(before, after, 9.0, sampled(100, 130, 155), NAMES) == ({"output_tokens": 60.0}, ())
    assert counted(before, after, 9.0, Telemetry(), NAMES) == ({"output_tokens": 60.0}, ())


def test_an_engine_that_began_anew_keeps_what_was_seen_of_its_first_life():
    before, after = {"output_tokens": 100.0}, {"output_tokens": 30.0}
    assert counted(before, after, 9.0, sampled(100, 140, 10), NAMES) == (
        {"output_tokens": 70.0},
        ((2.0, 3.0),),
    )


def test_samples_from_outside_the_load_are_no_restart():
    """The engine still works on requests that the client gave up, before the first and after the last one."""
    at_ns = np.array([-2, -1, 1, 4, 9]) * S
    telemetry = Telemetry({"engine.output_tokens": Samples(at_ns, np.array([900.0, 950, 1000, 1200, 1310]))})
    before, after = {"output_tokens": 1000.0}, {"output_tokens": 1300.0}
    assert counted(before, after, 9.0, telemetry.between(0, 5 * S), NAMES) == ({"output_tokens": 300.0}, ())
    restarted = Telemetry({"engine.output_tokens": Samples(at_ns, np.array([900.0, 950, 1200, 40, 310]))})
    after = {"output_tokens": 300.0}
    assert counted(before, after, 9.0, restarted.between(0, 5 * S), NAMES) == (
        {"output_tokens": 500.0},
        ((1.0, 4.0),),
    )


def test_no_answer_at_one_end_is_no_count():
    assert counted(None, {"output_tokens": 1.0}, 9.0, sampled(), NAMES) == (None, ())
    assert counted({"output_tokens": 1.0}, None, 9.0, sampled(), NAMES) == (None, ())
    assert counted({}, {"output_tokens": 1.0}, 9.0, sampled(), NAMES) == ({}, ())


def test_a_counter_that_an_engine_shows_once_it_has_counted_began_at_0():
    """SGLang after a start has no counter of cached tokens until the first hit."""
    names = NAMES | {"cached_prompt_tokens", "preemptions"}
    before = {"output_tokens": 100.0}
    after = {"output_tokens": 160.0, "cached_prompt_tokens": 40.0}
    telemetry = Telemetry({"engine.cached_prompt_tokens": Samples(np.arange(2), np.array([10.0, 25.0]))})
    assert counted(before, after, 9.0, telemetry, names) == (
        {"output_tokens": 60.0, "cached_prompt_tokens": 40.0},
        (),
    )


def test_tokens_that_every_request_has_did_not_begin_at_0_where_they_were_not_read():
    """An engine that counts cached tokens apart has no whole prompts before the first of them."""
    names = NAMES | {"prompt_tokens"}
    after = {"output_tokens": 180.0, "prompt_tokens": 8200.0}
    assert counted({"output_tokens": 100.0}, after, 9.0, sampled(), names) == ({"output_tokens": 80.0}, ())


def test_each_of_several_engines_counts_for_itself():
    """In their sum the restart of one would look like the other's work done again."""
    telemetry = Telemetry(
        {
            f"engine.{place}.output_tokens": Samples(np.array([1, 2]) * S, np.array(values, float))
            for place, values in enumerate([(500, 520), (500, 10)])
        }
    )
    ends = [({"output_tokens": 500.0}, {"output_tokens": count}) for count in (530.0, 20.0)]
    parts = [counted(*one, 9.0, telemetry, NAMES, prefix=f"engine.{place}") for place, one in enumerate(ends)]
    assert added(parts) == ({"output_tokens": 50.0}, ((1.0, 2.0),))
    assert added([*parts, (None, ())]) == (None, ((1.0, 2.0),))
    assert added([*parts, ({}, ())]) == ({}, ((1.0, 2.0),)), "a part of the whole is not the whole"
    assert added([(None, ())]) == (None, ())


def test_when_a_counter_fell_is_between_the_reads_around_it():
    """Of several counters, the one that fell most often says it."""
    samples = {"engine.output_tokens": Samples(np.array([2, 4]) * S, np.array([50.0, 5.0]))}
    names = NAMES | {"prompt_tokens"}
    before, after = (
        {"output_tokens": 90.0, "prompt_tokens": 9.0},
        {"output_tokens": 2.0, "prompt_tokens": 9.0},
    )
    assert counted(before, after, 7.5, Telemetry(samples), names)[1] == ((0.0, 2.0), (2.0, 4.0), (4.0, 7.5))
    parts = [(None, ((3.0, 4.0),)), (None, ((1.0, 2.0), (5.0, 6.0)))]
    assert added(parts)[1] == ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))


def test_histograms_of_several_engines_add_up_where_their_bounds_are_the_same():
    one = HistogramIncrease(buckets=((0.1, 3.0), (None, 4.0)), sum=0.5, count=4.0)
    other = HistogramIncrease(buckets=((0.2, 1.0), (None, 1.0)), sum=0.1, count=1.0)
    assert added_histograms([{"ttft": one}, {"ttft": one}]) == {
        "ttft": HistogramIncrease(buckets=((0.1, 6.0), (None, 8.0)), sum=1.0, count=8.0)
    }
    assert added_histograms([{"ttft": one}, {"ttft": other}]) == {}
    assert added_histograms([{"ttft": one}, {}]) == {}


def test_counts_are_read_until_they_rest():
    answers = iter([{"output_tokens": 5.0}, {"output_tokens": 8.0}, {"output_tokens": 8.0}, None])
    assert settled(lambda: next(answers), NAMES) == {"output_tokens": 8.0}
    assert next(answers) is None, "and not once more"


def test_a_cell_begins_when_the_engine_holds_no_request():
    busy = [{"running": 1.0, "output_tokens": 5.0}, {"running": 0.0, "waiting": 1.0, "output_tokens": 6.0}]
    answers = iter([*busy, {"running": 0.0, "waiting": 0.0, "output_tokens": 9.0}, None])
    assert idle(lambda: next(answers))["output_tokens"] == 9.0
    assert next(answers) is None, "and not once more"
    assert idle(lambda: {"output_tokens": 5.0}) == {"output_tokens": 5.0}, (
        "one without gauges is not waited for"
    )
    assert idle(lambda: None) is None


def test_an_engine_that_dies_meanwhile_has_its_last_counts():
    answers = iter([{"output_tokens": 5.0}, None])
    assert settled(lambda: next(answers), NAMES) == {"output_tokens": 5.0}
    assert settled(lambda: None, NAMES) is None


def test_a_histogram_counts_what_came_in_between():
    def one(*counts):
        return {
            "buckets": [(0.1, counts[0]), (float("inf"), counts[1])],
            "sum": counts[2],
            "count": counts[1],
        }

    found = histogram_increase({"ttft": one(1.0, 4.0, 2.0)}, {"ttft": one(3.0, 9.0, 5.0)})
    increase = HistogramIncrease(buckets=((0.1, 2.0), (None, 5.0)), sum=3.0, count=5.0)
    assert found == {"ttft": increase}
    anew = histogram_increase({"ttft": one(1.0, 40.0, 2.0)}, {"ttft": one(3.0, 9.0, 5.0)})
    assert anew["ttft"].count == 9.0
    assert histogram_increase({}, {"ttft": one(3.0, 9.0, 5.0)})["ttft"].count == 9.0


@pytest.mark.parametrize("before", [(2.0, 4.0, 30.0), (4.0, 4.0, 2.0)], ids=["the sum", "a bucket"])
def test_a_histogram_that_soon_counted_more_than_before_its_restart_is_whole(before):
    def one(bucket, count, total):
        return {"buckets": [(0.1, bucket), (float("inf"), count)], "sum": total, "count": count}

    found = histogram_increase({"ttft": one(*before)}, {"ttft": one(3.0, 9.0, 5.0)})["ttft"]
    assert (found.count, found.sum) == (9.0, 5.0)
    assert found.buckets == ((0.1, 3.0), (None, 9.0))


def test_label_sets_in_another_order_are_no_restart():
    def one(total):
        return {"buckets": [(float("inf"), 3.0)], "sum": total, "count": 3.0}

    found = histogram_increase({"ttft": one(0.1 + 0.2 + 0.3)}, {"ttft": one(0.3 + 0.2 + 0.1)})["ttft"]
    assert (found.count, found.sum) == (0.0, pytest.approx(0.0, abs=1e-9))


def test_a_histogram_that_could_not_be_read_before_the_cell_is_not_of_the_cell():
    """It is of all that the engine did since its start."""
    now = {"ttft": {"buckets": [], "sum": 5.0, "count": 9.0}}
    assert histogram_increase(None, now) == histogram_increase(now, None) == {}


@pytest.mark.parametrize("missing", ["sum", "count"])
def test_a_histogram_without_its_sum_or_count_is_not_there(missing):
    """Engines may write NaN for a sum: a mean of 0 ms would be a figure that nobody measured."""
    now = {"buckets": [(0.1, 3.0), (float("inf"), 9.0)], "sum": 5.0, "count": 9.0}
    assert histogram_increase({}, {"ttft": now, "e2e": now | {missing: None}}).keys() == {"ttft"}


def test_gpus_are_named_by_number_uuid_or_instance():
    uuids, parents = ["GPU-aa", "GPU-ab", "GPU-c"], {"MIG-x": 2}
    assert visible({"CUDA_VISIBLE_DEVICES": "2,0"}, uuids, parents)[0] == [0, 2]
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-c"}, uuids, parents)[0] == [2]
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-a"}, uuids, parents)[0] == [], (
        "of two that begin so, neither"
    )
    assert visible({"CUDA_VISIBLE_DEVICES": "MIG-x"}, uuids, parents)[0] == [2]
    assert visible({"CUDA_VISIBLE_DEVICES": "1", "NVIDIA_VISIBLE_DEVICES": "all"}, uuids, parents)[0] == [1]
    assert visible({"NVIDIA_VISIBLE_DEVICES": "none"}, uuids, parents)[0] == []
    assert visible({"CUDA_VISIBLE_DEVICES": "-1"}, uuids, parents)[0] == []
    assert visible({"CUDA_VISIBLE_DEVICES": "0,7,1"}, uuids, parents)[0] == [0], "CUDA stops at 7"


@pytest.mark.parametrize(
    ("given", "amd", "nvidia"),
    [
        ({"ROCR": "3,2", "HIP": "0"}, [3], [0, 1, 2, 3]),
        ({"ROCR": "2,3", "CUDA": "1"}, [3], [1]),
        ({"HIP": "1", "CUDA": "3"}, [1], [3]),
        ({"ROCR": "", "HIP": "0"}, [], [0, 1, 2, 3]),
        ({"NVIDIA": ""}, [], []),
    ],
)
def test_each_maker_has_variables_and_a_rank_of_its_own(given, amd, nvidia):
    """HIP counts from 0 among the GPUs that ROCR leaves, and goes before CUDA."""
    env = {f"{name}_VISIBLE_DEVICES": value for name, value in given.items()}
    assert visible(env, ["a", "b", "c", "d"], {}, AMD)[0] == amd
    assert visible(env, ["a", "b", "c", "d"], {})[0] == nvidia


def test_an_engine_is_on_this_machine_at_its_own_addresses_and_its_containers(monkeypatch):
    def address(ip, netmask):
        family = socket.AF_INET6 if ":" in ip else socket.AF_INET
        return SimpleNamespace(family=family, address=ip, netmask=netmask)

    interfaces = {
        "eth0": [address("10.1.2.3", "255.255.0.0"), address("fe80::1%eth0", "ffff:ffff:ffff:ffff::")],
        "docker0": [address("172.17.0.1", "255.255.0.0")],
        "sit0": [SimpleNamespace(family=17, address="00:00", netmask=None)],
    }
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: interfaces)
    for here in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "10.1.2.3", "172.17.0.2", "fe80::1"):
        assert machine.is_this_machine(here), here
    for elsewhere in ("10.1.2.4", "192.0.2.1", "no-such-host.invalid"):
        assert not machine.is_this_machine(elsewhere), elsewhere
