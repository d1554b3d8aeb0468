"""AMD GPUs by amdsmi's answers: the series of NVIDIA's in their units, what is N/A, what fails.

No AMD GPU was at hand: the answers have the forms of amdsmi 7.0.2.
"""

import os
import sys
from types import SimpleNamespace

import pytest

from harness.sampling.sources import UnavailableError, UnreadableError
from harness.sampling.sources.amd import AmdGpus
from tests.factories.sampled import read


class AmdSmiError(Exception):
    pass


CLOCKS = {"gfx": 2100, "mem": 1300}
POWER = {"socket_power": 0, "current_socket_power": "N/A", "average_socket_power": 512}
OWN, OTHER = os.getpid(), os.getppid()
PROCESSES = [
    {"pid": OWN, "memory_usage": {"vram_mem": 900}},
    {"pid": OTHER, "memory_usage": {"vram_mem": 100}},
]


@pytest.fixture
def library(monkeypatch):
    """The module with the GPUs "a" and "b"; a test replaces its functions."""
    made = SimpleNamespace(
        AmdSmiException=AmdSmiError,
        AmdSmiClkType=SimpleNamespace(GFX="gfx", MEM="mem"),
        AmdSmiTemperatureType=SimpleNamespace(HOTSPOT="hot"),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT="now"),
        amdsmi_init=lambda: None,
        amdsmi_get_processor_handles=lambda: ["a", "b"],
        amdsmi_get_gpu_asic_info=lambda gpu: {"market_name": f"MI300X {gpu}"},
        amdsmi_get_gpu_device_uuid=lambda gpu: f"uuid-{gpu}",
        amdsmi_get_gpu_vram_usage=lambda _gpu: {"vram_total": 196_592, "vram_used": 1024},
        amdsmi_get_gpu_activity=lambda _gpu: {"gfx_activity": 97, "umc_activity": 33},
        amdsmi_get_power_info=lambda _gpu: POWER,
        amdsmi_get_energy_count=lambda _gpu: {"energy_accumulator": 4_000_000, "counter_resolution": 15.25},
        amdsmi_get_clock_info=lambda _gpu, kind: {"clk": CLOCKS[kind]},
        amdsmi_get_temp_metric=lambda _gpu, kind, metric: {("hot", "now"): 71}[kind, metric],
        amdsmi_get_gpu_process_list=lambda _gpu: PROCESSES,
    )
    monkeypatch.setitem(sys.modules, "amdsmi", made)
    return made


def refuse(*_given):
    raise AmdSmiError("not supported")


def opened(pids=(OWN,), **env):
    gpus = AmdGpus(env, lambda: frozenset(pids), 0.1)
    gpus.open()
    return gpus


def test_figures_are_in_bytes_watts_and_joules(library):
    gpus = opened(HIP_VISIBLE_DEVICES="1")
    assert gpus.about["devices"] == [
        {
            "index": 1,
            "name": "MI300X b",
            "uuid": "uuid-b",
            "driver": None,
            "memory_bytes": 196_592 * 1024 * 1024,
            "power_limit_w": None,
            "mig": [],
        }
    ]
    assert gpus.about["chosen"] == "1 of 2 GPUs: HIP_VISIBLE_DEVICES=1"
    assert read(gpus) == {
        "gpu.1.utilisation_pct": 97,
        "gpu.1.memory_utilisation_pct": 33,
        "gpu.1.memory_used_bytes": 1 << 30,
        "gpu.1.power_w": 512,
        "gpu.1.energy_j": pytest.approx(61.0),
        "gpu.1.sm_clock_mhz": 2100,
        "gpu.1.memory_clock_mhz": 1300,
        "gpu.1.temperature_c": 71,
        "gpu.1.engine_memory_bytes": 900,
        "gpu.1.other_memory_bytes": 100,
    }
    assert gpus.missing == {}


@pytest.mark.parametrize(
    ("info", "watts"),
    [
        ({"current_socket_power": 640, "average_socket_power": 512}, 640),
        ({"current_socket_power": "N/A", "average_socket_power": "N/A", "socket_power": 300}, 300),
        ({"current_socket_power": 0, "average_socket_power": 512}, 512),
        ({"current_socket_power": "N/A", "average_socket_power": 0}, None),
        ({}, None),
    ],
)
def test_the_current_power_goes_before_an_average_and_nothing_is_not_zero(library, info, watts):
    library.amdsmi_get_power_info = lambda _gpu: info
    gpus = opened(HIP_VISIBLE_DEVICES="0")
    assert read(gpus).get("gpu.0.power_w") == watts
    assert gpus.missing == ({} if watts else {"gpu.0.power_w": "amdsmi: N/A"})


def test_what_one_gpu_lacks_is_missing_there_and_the_rest_is_read(library):
    library.amdsmi_get_gpu_activity = lambda _gpu: {"gfx_activity": 97, "umc_activity": "N/A"}
    count = library.amdsmi_get_energy_count
    library.amdsmi_get_energy_count = lambda gpu: refuse() if gpu == "b" else count(gpu)
    gpus = opened()
    found = read(gpus)
    assert gpus.missing == {
        "gpu.0.memory_utilisation_pct": "amdsmi: N/A",
        "gpu.1.memory_utilisation_pct": "amdsmi: N/A",
        "gpu.1.energy": "amdsmi: not supported",
    }
    assert "gpu.0.energy_j" in found
    assert "gpu.1.energy_j" not in found
    assert found["gpu.1.utilisation_pct"] == 97
    library.amdsmi_get_gpu_activity = lambda _gpu: {"gfx_activity": 97, "umc_activity": 33}
    library.amdsmi_get_energy_count = count
    read(gpus)
    assert gpus.missing == {}


@pytest.mark.parametrize(
    "count", [{"power": 4_000_000}, {"energy_accumulator": "N/A", "counter_resolution": 15.25}]
)
def test_an_answer_of_another_version_costs_its_own_field(library, count):
    """Before ROCm 6.2 the counter of energy was called power."""
    library.amdsmi_get_energy_count = lambda _gpu: count
    gpus = opened()
    found = read(gpus)
    assert {"gpu.0.power_w", "gpu.1.power_w", "gpu.1.engine_memory_bytes"} <= found.keys()
    assert set(gpus.missing) == {"gpu.0.energy", "gpu.1.energy"}


@pytest.mark.parametrize("total", [{}, {"vram_total": "N/A"}])
def test_facts_of_another_version_are_not_known_and_the_gpus_are_read(library, total):
    library.amdsmi_get_gpu_asic_info = lambda _gpu: {"product_name": "MI300X"}
    library.amdsmi_get_gpu_vram_usage = lambda _gpu: {"vram_used": 1024, **total}
    gpus = opened()
    assert [(gpu["name"], gpu["memory_bytes"]) for gpu in gpus.about["devices"]] == [(None, None)] * 2
    assert {"gpu.0.power_w", "gpu.1.memory_used_bytes"} <= read(gpus).keys()
    assert gpus.missing == {}


def test_where_no_gpu_answers_the_source_cannot_be_read(library):
    gpus = opened()
    for name in list(vars(library)):
        if name.startswith("amdsmi_get_"):
            setattr(library, name, refuse)
    with pytest.raises(UnreadableError, match="no GPU could be read"):
        read(gpus)


def test_a_gpu_that_fails_while_it_is_opened_is_named_and_the_others_are_read(library):
    uuid = library.amdsmi_get_gpu_device_uuid
    library.amdsmi_get_gpu_device_uuid = lambda gpu: refuse() if gpu == "a" else uuid(gpu)
    gpus = opened()
    assert [device["uuid"] for device in gpus.about["devices"]] == ["uuid-b"]
    assert gpus.about["chosen"].startswith("2 of 2 GPUs")
    assert gpus.about["lost"]["gpu.0"]["why"] == "not supported"
    assert gpus.missing == {"gpu.0.*": "amdsmi: not supported"}
    found = read(gpus)
    assert found["gpu.1.power_w"] == 512
    assert not any(name.startswith("gpu.0.") for name in found)
    others = opened(HIP_VISIBLE_DEVICES="1")
    assert "lost" not in others.about, "of a GPU that is not the engine's"
    gpus = AmdGpus({"HIP_VISIBLE_DEVICES": "0"}, frozenset, 0.1)
    with pytest.raises(UnavailableError, match=r"^amdsmi: gpu\.0: not supported$"):
        gpus.open()
    assert gpus.about["broken"] is True


def test_what_changes_slowly_is_read_at_every_tenth_beat(library):
    gpus = opened(HIP_VISIBLE_DEVICES="0")
    slowly = [number for number in range(21) if "gpu.0.temperature_c" in read(gpus)]
    assert slowly == [0, 10, 20]


def test_memory_of_an_engine_whose_processes_are_not_known_is_nobody_s(library):
    assert not any(name.endswith(("engine_memory_bytes", "other_memory_bytes")) for name in read(opened([])))


def test_memory_of_processes_of_another_namespace_is_nobody_s(library):
    """In a container the kernel lists the pids of the host, of the engine too."""
    gone = {"pid": 1 << 22, "memory_usage": {"vram_mem": 900}}  # above every pid
    library.amdsmi_get_gpu_process_list = lambda _gpu: [gone]
    gpus = opened(HIP_VISIBLE_DEVICES="0")
    assert not any(name.endswith(("engine_memory_bytes", "other_memory_bytes")) for name in read(gpus))
    assert gpus.missing == {"gpu.*.engine_memory_bytes": "the GPU lists processes unknown here"}
    library.amdsmi_get_gpu_process_list = lambda _gpu: []
    for _ in range(10):  # until the next slow beat
        read(gpus)
    assert gpus.missing == {}


def test_a_library_that_fails_is_a_fault_and_none_at_all_is_not(library, monkeypatch):
    library.amdsmi_init = refuse
    gpus = AmdGpus({}, frozenset, 0.1)
    with pytest.raises(UnavailableError, match="amdsmi: not supported"):
        gpus.open()
    assert gpus.about["broken"] is True
    refusal = AmdSmiError("AMDSMI_STATUS_DRIVER_NOT_LOADED")
    refusal.err_code = 34
    library.amdsmi_init = lambda: (_ for _ in ()).throw(refusal)
    gpus = AmdGpus({}, frozenset, 0.1)
    with pytest.raises(UnavailableError, match="DRIVER_NOT_LOADED"):
        gpus.open()
    assert gpus.about["broken"] is False, "ROCm on a machine without a GPU"
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    gpus = AmdGpus({}, frozenset, 0.1)
    with pytest.raises(UnavailableError, match=r"^amdsmi: "):
        gpus.open()
    assert gpus.about["broken"] is False


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"HIP_VISIBLE_DEVICES": ""}, "no GPU: HIP_VISIBLE_DEVICES="),
        ({"ROCR_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "0"}, "no GPU: ROCR_VISIBLE_DEVICES=-1"),
        ({"HIP_VISIBLE_DEVICES": "7"}, "0 of 2 GPUs: HIP_VISIBLE_DEVICES=7"),
    ],
)
def test_an_engine_that_was_given_no_gpu_has_none(library, env, says):
    with pytest.raises(UnavailableError) as caught:
        opened(**env)
    assert str(caught.value) == f"amdsmi: {says}"
