"""Each rule from numbers that can be checked by eye, and the order in which they are tried."""

from dataclasses import replace

import pytest

from harness.metrics.limiter import Watched, limiter
from harness.model import ClientStats, Gpu, Host, LoadPoint, Server
from tests.factories.documents import changed, made


def cell(**changes):
    """A GPU engine at concurrency 8 in which nothing is full."""

    def steady(value):
        return None if value is None else {"mean": value, "max": value}

    gauges = {
        name: steady(changes.get(name, default))
        for name, default in {
            "utilisation_pct": 40.0,
            "memory_utilisation_pct": 20.0,
            "sm_active_pct": None,
            "dram_active_pct": None,
        }.items()
    }
    alone = {"pid": 7, "name": "EngineCore", "cores": changes.get("alone", 0.5)}
    return Watched(
        load=changes.get("load", LoadPoint("concurrency", 8)),
        client=made(ClientStats, busy_share=changes.get("client", 0.1)),
        gpu=made(Gpu, gauges) if changes.get("has_gpu", True) else None,
        server=made(
            Server,
            running=steady(changes.get("running", 8.0)),
            waiting=steady(changes.get("waiting", 0.0)),
            kv_use=steady(changes.get("kv_use", 0.3)),
            preemptions=changes.get("preemptions", 0.0),
            cpu_cores=changes.get("cores", 1.2),
            busiest_process=alone,
        ),
        host=made(
            Host,
            cpus=16,
            busy_cores=changes.get("busy", 2.0),
            client_cores=changes.get("client_cores", 0.5),
            other_cores=changes.get("others", 0.1),
        ),
        threads=changes.get("threads"),
        quotas=changes.get("quotas", {}),
    )


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({}, "load", "with 8 in flight nothing was saturated (GPU busy 40%, engine on 1.2 of 16 cores"),
        ({"load": LoadPoint("rate", 2.5)}, "load", "2.5 requests/s"),
        ({"load": LoadPoint("rate", 1000.254)}, "load", "with 1000.254 requests/s"),
        (
            {"load": LoadPoint("trace", 1.5)},
            "load",
            "the load: at 1.5× the trace's pace nothing was saturated",
        ),
        ({"client": 0.97, "kv_use": 1.0, "waiting": 9}, "client", "97% of a core"),
        ({"kv_use": 0.99, "waiting": 5.0}, "kv-cache", "99% full while 5.0 requests waited"),
        ({"kv_use": 0.997, "waiting": 5.0}, "kv-cache", "up to 99.7% full"),
        ({"kv_use": 0.99, "preemptions": 3.0}, "kv-cache", "3 were preempted"),
        ({"kv_use": 0.99}, "load", "KV cache up to 99%"),  # full of reusable blocks, nobody waits
        ({"dram_active_pct": 82.0, "sm_active_pct": 90.0}, "gpu-memory-bandwidth", "82% of the peak"),
        ({"dram_active_pct": 30.0, "sm_active_pct": 90.0}, "gpu-compute", "90% of the SMs"),
        ({"memory_utilisation_pct": 75.0}, "gpu-memory-bandwidth", "as far as NVML reports"),
        ({"memory_utilisation_pct": 75.0, "dram_active_pct": 30.0}, "load", "nothing was saturated"),
        ({"utilisation_pct": 98.0}, "gpu", "98% of the time"),
        (
            {"utilisation_pct": 98.0, "waiting": 4.0},
            "queue",
            "4.0 requests waited while 8.0 ran (GPU busy 98%",
        ),
        ({"alone": 0.97}, "engine-process", "EngineCore used 0.97 of a core, the GPU was busy 40%"),
        ({"alone": 0.97, "utilisation_pct": 95.0}, "gpu", "95%"),
        # llama-server on an H200 waits for the GPU in a loop: one user, and eight with long prompts.
        ({"alone": 1.02, "utilisation_pct": 84.7}, "load", "GPU busy 85%"),
        ({"alone": 1.05, "utilisation_pct": 48.54}, "engine-process", "the GPU was busy 49%"),
        (
            {"busy": 15.9, "others": 9.0},
            "cpu-contended",
            "15.9 of 16 cores busy, 9.0 of them with other work",
        ),
        ({"has_gpu": False, "cores": 15.0}, "cpu", "used 15.0 of 16 cores"),
        ({"has_gpu": False, "cores": 13.6}, "cpu", "used 13.6 of 16 cores"),  # 85%
        ({"has_gpu": False, "cores": 13.5}, "load", "engine on 13.5 of 16 cores"),
        ({"has_gpu": False, "cores": 15.0, "waiting": 4.0}, "cpu", "used 15.0 of 16 cores"),
        # A container with `cpus: 2` on those 16.
        ({"has_gpu": False, "cores": 1.9, "quotas": {"server": 2.0}}, "cpu", "used 1.9 of 2 cores"),
        ({"has_gpu": False, "cores": 1.4, "quotas": {"server": 1.5}}, "cpu", "used 1.4 of 1.5 cores"),
        ({"has_gpu": False, "quotas": {"server": 2.0}}, "load", "engine on 1.2 of 2 cores"),
        ({"has_gpu": False, "quotas": {"server": 64.0}}, "load", "engine on 1.2 of 16 cores"),
        ({"has_gpu": False, "cores": 0.9, "quotas": {"server": 1}}, "cpu", "used 0.9 of 1 core"),
        # So does an engine on a GPU; its threads are not those that feed the GPU.
        ({"cores": 1.8, "quotas": {"server": 2.0}}, "cpu", "used 1.8 of 2 cores, the GPU was busy 40%"),
        ({"cores": 1.8, "utilisation_pct": 84.7, "quotas": {"server": 2.0}}, "load", "engine on 1.8 of 2"),
        ({"cores": 1.2, "threads": 1.0}, "load", "nothing was saturated"),
        ({"client_cores": 0.97, "quotas": {"client": 1.0}}, "client", "used 0.97 of 1 core that it gets"),
        ({"client_cores": 1.7, "quotas": {"client": 2.0}}, "load", "nothing was saturated"),
        ({"client_cores": 1.9}, "load", "nothing was saturated"),
    ],
)
def test_a_cell_has_one_limiter_and_its_numbers(changes, code, words):
    found, reason = limiter(cell(**changes))
    assert reason == ""
    assert found.code == code
    assert words in found.sentence
    assert None not in found.numbers.values()


def test_nobody_lost_a_place_where_nothing_was_preempted():
    found, _ = limiter(cell(kv_use=0.99, waiting=5.0))
    assert found.sentence.endswith("5.0 requests waited")


def test_threads_bound_what_an_engine_can_use():
    found, _ = limiter(cell(has_gpu=False, cores=0.97, threads=1.0))
    assert found.code == "cpu"
    assert found.sentence.endswith("the engine used 1.0 of 16 cores with 1 thread")


@pytest.mark.parametrize("others", [{}, {"cores": 15.9}, {"busy": 15.9, "others": 8.0}])
def test_gpus_that_do_not_show_how_busy_they_are_leave_the_limiter_unknown(others):
    """A MIG instance has no utilisation: that nothing was saturated, or the CPU, nobody saw."""
    on_mig = cell(utilisation_pct=None, memory_utilisation_pct=None, **others)
    on_mig = replace(on_mig, gpu=changed(on_mig.gpu, engine_gpus=(0,)))
    assert limiter(on_mig) == (None, "how busy the engine's GPUs were could not be read")
    full = cell(utilisation_pct=None, kv_use=0.99, waiting=5.0)
    assert limiter(replace(full, gpu=on_mig.gpu))[0].code == "kv-cache"


def test_a_sentence_ends_where_no_more_is_known():
    server = changed(
        cell().server, cpu_cores=None, kv_use=None, running=None, waiting={"mean": 4.0, "max": 4.0}
    )
    found, _ = limiter(replace(cell(), gpu=None, server=server))
    assert found.sentence.endswith("4.0 requests waited")


def test_nothing_watched_is_no_limiter():
    found, reason = limiter(replace(cell(), gpu=None, server=None, host=None))
    assert found is None
    assert "neither" in reason


def test_a_server_that_did_not_keep_up_is_not_limited_by_its_load():
    """A queue that no gauge shows: more load would not have given more."""
    found, reason = limiter(replace(cell(), state="unstable"))
    assert found is None
    assert reason.startswith("the server did not keep up")
    assert limiter(replace(cell(waiting=4.0), state="unstable"))[0].code == "queue"
    assert "neither" in limiter(replace(cell(), gpu=None, server=None, host=None, state="unstable"))[1]
