"""Engines that are up together: their seats, the size of their blocks, and what cannot be."""

import os

import pytest

from harness.engines.start.launch_choice import LaunchChoice
from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare

URLS = "vllm=http://127.0.0.1:1,sglang=http://127.0.0.1:2"


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})


def options(backends="vllm,sglang", **changes):
    launch = "auto" if "=" in backends else "simulate"
    return RunOptions("fixed-length", backends, **{"launch": launch, "pairing": "blocks", **changes})


def test_every_start_gives_each_engine_the_next_equal_part_of_the_cores():
    prepared = prepare(options(repeats=3))
    cores = {(block.start, block.backend): prepared.cores_of(block) for block in prepared.plan}
    assert cores[0, 0] == cores[1, 1] == cores[2, 0] == (0, 1)
    assert cores[0, 1] == cores[1, 0] == cores[2, 1] == (2, 3)


def test_engines_that_take_turns_have_all_cores():
    prepared = prepare(options(pairing="starts"))
    assert {prepared.cores_of(block) for block in prepared.plan} == {()}


def test_repeats_are_starts_and_each_has_its_blocks():
    prepared = prepare(options(repeats=3, blocks=4))
    assert prepared.repeats == 12
    assert {(block.repeat, block.start) for block in prepared.plan} == {(r, r // 4) for r in range(12)}
    assert len(prepared.lives) == 6
    assert prepare(options()).looks == (24, 32, 40, 56, 80)


def test_servers_that_run_have_one_start():
    prepared = prepare(options(URLS))
    assert {block.start for block in prepared.plan} == {0}
    assert (prepared.looks[0], prepared.looks[-1]) == (10, 40)
    assert len(prepared.lives) == 2
    assert prepare(options(URLS, overrides={"verdict.max_repeats": 5})).looks == (5,)
    assert prepare(options(URLS, overrides={"verdict.min_repeats": 5})).looks[:2] == (5, 7)


def test_a_block_is_a_share_of_what_a_run_sends_and_needs():
    whole, load = prepare(options(pairing="starts")).scenario.load, prepare(options()).scenario.load
    assert (whole.requests, load.requests) == (32, 8)  # two of each of four slots
    assert load.min_answers == whole.min_answers / 8
    assert load.min_seconds == whole.min_seconds / 8
    asked = prepare(options(overrides={"load.requests": 20})).scenario.load
    assert asked.requests == 20


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"backends": "vllm,tgi"}, "tgi has no cache reset"),
        ({"backends": "vllm,sglang=http://127.0.0.1:2"}, "bench did not start sglang"),
        ({"backends": "vllm"}, "a single one has no partner"),
        ({"backends": URLS, "blocks": 4}, "servers that run have one start"),
        ({"blocks": 1}, "must be at least 2"),
        ({"pairing": "starts", "blocks": 4}, "only applies to --pairing blocks"),
        ({"find_capacity": True, "overrides": {"slo.ttft_ms.p95": 500}}, "a capacity search has no pairs"),
    ],
)
def test_what_cannot_be_up_together_is_one_error_that_says_why(given, why):
    launch = {"launch": "auto"} if "=" in given.get("backends", "") else {}
    with pytest.raises(SpecError, match=why):
        prepare(options(**{**given, **launch}))


def test_there_are_no_more_seats_than_the_limit_of_cpu_time_is_worth(monkeypatch):
    monkeypatch.setattr("harness.host.cpus.cpu_quota", lambda: 2.0)
    prepared = prepare(options())
    assert {prepared.cores_of(block) for block in prepared.plan} == {(0,), (1,)}


def test_what_does_not_fit_is_referred_to_starts(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    with pytest.raises(SpecError, match="2 engines need a core each, and there are 1") as raised:
        prepare(options())
    assert "`--pairing starts`" in raised.value.hint


@pytest.fixture
def on_gpus(monkeypatch):
    """vLLM and SGLang as processes on CUDA, on a machine with two GPUs."""
    choice = LaunchChoice("process", "as the test says", "cuda")
    monkeypatch.setattr("harness.run.setup.backends.resolve_launch", lambda *_: choice)
    monkeypatch.setattr("harness.run.setup.pairing.gpu_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("on_gpus")
def test_each_engine_gets_the_next_gpus():
    prepared = prepare(options(launch="process", repeats=2, gpus=("GPU-a", "GPU-b")))
    gpus = {(block.start, block.backend): prepared.gpus_of(block) for block in prepared.plan}
    assert gpus == {(0, 0): ("GPU-a",), (0, 1): ("GPU-b",), (1, 0): ("GPU-b",), (1, 1): ("GPU-a",)}


@pytest.mark.usefixtures("on_gpus")
def test_engines_that_are_spread_over_several_gpus_get_as_many(monkeypatch):
    two = options(launch="process", repeats=2, engine_values={"tensor_parallel": "2"})
    with pytest.raises(SpecError, match="2 engines need 4 GPUs, and there are 2 for them"):
        prepare(two)
    monkeypatch.setattr("harness.run.setup.pairing.gpu_count", lambda: 8)
    prepared = prepare(two)
    gpus = {(block.start, block.backend): prepared.gpus_of(block) for block in prepared.plan}
    assert gpus[0, 0] == gpus[1, 1] == ("0", "1")
    assert gpus[0, 1] == gpus[1, 0] == ("2", "3")


@pytest.mark.usefixtures("on_gpus")
def test_fewer_gpus_than_engines_is_an_error():
    with pytest.raises(SpecError, match="2 engines need 2 GPUs, and there are 1 for them"):
        prepare(options(launch="process", gpus=("0",)))


@pytest.mark.parametrize(
    ("backends", "changes"),
    [
        ("r=vllm=http://h:1+http://h:2,s=vllm=http://h:2+http://h:3", {}),
        ("r=vllm=http://localhost:1+http://h:2,s=vllm=http://127.0.0.1:1+http://h:3", {}),
        ("vllm=http://h:1", {"apis": ("chat", "messages")}),
        ("vllm=http://h:1", {"aa": True}),
    ],
)
def test_one_server_is_no_duet_with_itself(backends, changes):
    with pytest.raises(SpecError, match=r"^--pairing: two of these backends are the same server") as caught:
        prepare(options(backends, pairing="duet", **changes))
    assert caught.value.hint == "`--pairing blocks` loads it in turns"
    assert prepare(options(backends, **changes)).together.kind == "blocks"


def test_two_engines_that_bench_starts_are_a_duet_with_themselves():
    assert prepare(options("vllm", pairing="duet", aa=True)).together.kind == "duet"
