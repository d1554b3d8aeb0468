"""NVIDIA GPUs by NVML's answers: figures in their units, what a GPU lacks, what fails and what is lost."""

import ctypes
import os
from types import SimpleNamespace

import pynvml
import pytest

from harness.sampling.sources import UnavailableError, UnreadableError
from harness.sampling.sources.nvml import NvidiaGpus, NvidiaGpusSlowly
from tests.factories.sampled import read

GIB = 1 << 30
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
UNKNOWN = pynvml.NVML_ERROR_UNKNOWN
LOST = pynvml.NVML_ERROR_GPU_IS_LOST
CLOCKS = {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}
PCIE_KIB = {pynvml.NVML_PCIE_UTIL_TX_BYTES: 1000, pynvml.NVML_PCIE_UTIL_RX_BYTES: 3000}


def instant(milliwatts, answer=pynvml.NVML_SUCCESS):
    return [SimpleNamespace(nvmlReturn=answer, value=SimpleNamespace(uiVal=milliwatts))]


ANSWERS = {
    "nvmlInit": None,
    "nvmlShutdown": None,
    "nvmlSystemGetDriverVersion": "999.1",
    "nvmlDeviceGetCount": 2,
    "nvmlDeviceGetHandleByIndex": lambda index: "ab"[index],
    "nvmlDeviceGetName": lambda gpu: f"GPU {gpu}",
    "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu}",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * GIB, used=30 * GIB),
    "nvmlDeviceGetPowerManagementLimit": 700_000,
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=41),
    "nvmlDeviceGetFieldValues": instant(312_500),
    "nvmlDeviceGetPowerUsage": 305_000,
    "nvmlDeviceGetTotalEnergyConsumption": 61_250_500,
    "nvmlDeviceGetClockInfo": lambda _gpu, kind: CLOCKS[kind],
    "nvmlDeviceGetTemperature": 64,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x24,
    "nvmlDeviceGetPcieThroughput": lambda _gpu, direction: PCIE_KIB[direction],
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlGpmQueryDeviceSupport": SimpleNamespace(isSupportedDevice=0),
}


class Library:
    """NVML with the GPUs "a" and "b". `errors` has codes that calls raise, by function and first argument."""

    def __init__(self, monkeypatch):
        self.answers, self.errors, self.asked = dict(ANSWERS), {}, []
        for name in ANSWERS:
            monkeypatch.setattr(pynvml, name, self._answering(name))

    def _answering(self, name):
        def call(*given):
            self.asked.append((name, *given))
            if (code := self.errors.get((name, *given[:1]))) is not None:
                raise pynvml.NVMLError(code)
            answer = self.answers[name]
            return answer(*given) if callable(answer) else answer

        return call


@pytest.fixture
def library(monkeypatch):
    return Library(monkeypatch)


def opened(source):
    source.open()
    return source


def fast(**env):
    return opened(NvidiaGpus(env, 0.1))


def slow(pids=()):
    return opened(NvidiaGpusSlowly({"CUDA_VISIBLE_DEVICES": "0"}, lambda: frozenset(pids), 1.0))


def test_watts_joules_and_bytes_are_made_of_what_nvml_counts_in(library):
    assert read(fast(CUDA_VISIBLE_DEVICES="1")) == {
        "gpu.1.utilisation_pct": 97,
        "gpu.1.memory_utilisation_pct": 41,
        "gpu.1.memory_used_bytes": 30 * GIB,
        "gpu.1.power_w": 312.5,
    }


def test_the_slow_beat_has_energy_clocks_heat_throttling_and_pcie_in_bytes(library):
    assert read(slow()) == {
        "gpu.0.energy_j": 61_250.5,
        "gpu.0.sm_clock_mhz": 1980,
        "gpu.0.memory_clock_mhz": 2619,
        "gpu.0.temperature_c": 64,
        "gpu.0.throttle_bits": 0x24,
        "gpu.0.pcie_sent_bytes_per_s": 1_024_000,
        "gpu.0.pcie_received_bytes_per_s": 3_072_000,
    }


@pytest.mark.parametrize("raises", [False, True])
def test_without_a_current_power_its_average_is_taken(library, raises):
    if raises:
        library.errors["nvmlDeviceGetFieldValues", "a"] = pynvml.NVML_ERROR_INVALID_ARGUMENT
    else:
        library.answers["nvmlDeviceGetFieldValues"] = instant(9, NOT_SUPPORTED)
    gpus = fast()
    assert read(gpus)["gpu.0.power_w"] == 305.0
    assert gpus.missing == {}


def test_a_field_that_a_gpu_never_gives_is_missing_there_and_asked_once(library):
    library.errors["nvmlDeviceGetUtilizationRates", "b"] = NOT_SUPPORTED
    gpus = fast()
    first, second = read(gpus), read(gpus)
    assert first == second
    assert library.asked.count(("nvmlDeviceGetUtilizationRates", "b")) == 1
    assert library.asked.count(("nvmlDeviceGetUtilizationRates", "a")) == 2
    assert gpus.missing == {
        "gpu.1.utilisation_pct": "NVML: Not Supported",
        "gpu.1.memory_utilisation_pct": "NVML: Not Supported",
    }
    assert {name for name in first if name.startswith("gpu.1.")} == {
        "gpu.1.memory_used_bytes",
        "gpu.1.power_w",
    }


def test_a_failure_that_may_pass_costs_one_field_and_is_asked_again(library):
    library.errors["nvmlDeviceGetUtilizationRates", "b"] = UNKNOWN
    gpus = fast()
    found = read(gpus)
    assert (found["gpu.0.utilisation_pct"], found["gpu.1.power_w"]) == (97, 312.5)
    assert "gpu.1.utilisation_pct" not in found
    assert gpus.missing == {
        "gpu.1.utilisation_pct": "NVML: Unknown Error",
        "gpu.1.memory_utilisation_pct": "NVML: Unknown Error",
    }
    assert read(fast(CUDA_VISIBLE_DEVICES="1"))["gpu.1.power_w"] == 312.5, "a part of the only one"
    library.errors.clear()
    assert "gpu.1.utilisation_pct" in read(gpus)
    assert gpus.missing == {}


def test_it_is_the_source_s_failure_only_where_nothing_of_any_gpu_can_be_read(library):
    calls = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPowerUsage")
    library.answers["nvmlDeviceGetFieldValues"] = instant(9, UNKNOWN)
    gpus = fast()
    library.errors |= dict.fromkeys(((call, "b") for call in calls), UNKNOWN)
    found = read(gpus)
    assert "gpu.0.power_w" in found
    assert not any(name.startswith("gpu.1.") for name in found)
    library.errors |= dict.fromkeys(((call, "a") for call in calls), UNKNOWN)
    with pytest.raises(UnreadableError) as caught:
        read(gpus)
    assert str(caught.value) == "gpu.0: Unknown Error; gpu.1: Unknown Error"
    library.errors.clear()
    assert {"gpu.0.power_w", "gpu.1.power_w"} <= read(gpus).keys()
    assert gpus.missing == {}


def test_a_lost_gpu_is_named_once_and_without_one_left_nothing_can_be_read(library):
    library.errors["nvmlDeviceGetMemoryInfo", "b"] = LOST
    gpus = fast()
    read(gpus)
    assert gpus.missing == {"gpu.1.*": "NVML: GPU is lost"}
    assert gpus.about["lost"]["gpu.1"]["why"] == "GPU is lost"
    assert {name.split(".")[1] for name in read(gpus)} == {"0"}
    library.errors["nvmlDeviceGetUtilizationRates", "a"] = LOST
    for _ in range(2):
        with pytest.raises(UnreadableError, match="GPU is lost"):
            read(gpus)
    assert set(gpus.about["lost"]) == {"gpu.0", "gpu.1"}


def test_facts_of_the_gpus_that_the_engine_was_given(library):
    library.errors["nvmlDeviceGetPowerManagementLimit", "b"] = NOT_SUPPORTED
    gpus = fast(CUDA_VISIBLE_DEVICES="1")
    assert gpus.about["chosen"] == "1 of 2 GPUs: CUDA_VISIBLE_DEVICES=1"
    assert gpus.about["devices"] == [
        {
            "index": 1,
            "name": "GPU b",
            "uuid": "GPU-b",
            "driver": "999.1",
            "memory_bytes": 80 * GIB,
            "power_limit_w": None,
            "mig": [],
        }
    ]
    assert fast().about["devices"][0]["power_limit_w"] == 700.0
    assert [found.about["named"] for found in (gpus, fast())] == [True, False]


def test_a_gpu_that_is_lost_before_the_first_read_leaves_the_others_their_numbers(library):
    """NVML counts a GPU that has fallen off the bus, and gives no handle of it."""
    library.errors["nvmlDeviceGetHandleByIndex", 0] = LOST
    gpus = fast()
    assert {name.split(".")[1] for name in read(gpus)} == {"1"}
    assert [device["uuid"] for device in gpus.about["devices"]] == ["GPU-b"]
    assert gpus.about["chosen"].startswith("2 of 2 GPUs")
    assert gpus.missing == {"gpu.0.*": "NVML: GPU is lost"}
    assert gpus.about["lost"]["gpu.0"]["why"] == "GPU is lost"
    other = fast(CUDA_VISIBLE_DEVICES="1")
    assert (other.missing, "lost" in other.about) == ({}, False), "the engine was not given that one"
    dead = NvidiaGpus({"CUDA_VISIBLE_DEVICES": "0"}, 0.1)
    with pytest.raises(UnavailableError, match=r"^NVML: gpu\.0: GPU is lost$"):
        dead.open()
    assert dead.about["broken"]


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, False),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, False),
        (UNKNOWN, True),
    ],
)
def test_no_driver_is_no_fault_of_the_machine_and_any_other_error_is(library, code, broken):
    library.errors["nvmlInit",] = code
    gpus = NvidiaGpus({}, 0.1)
    with pytest.raises(UnavailableError, match=r"^NVML: "):
        gpus.open()
    assert gpus.about["broken"] is broken


@pytest.mark.parametrize("hides", ["", "-1"])
def test_an_engine_that_was_given_no_gpu_has_none_and_the_driver_is_not_asked(library, hides):
    """Energy of an engine on the CPU does not hang on a driver that cannot be read."""
    library.errors["nvmlInit",] = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    gpus = NvidiaGpus({"CUDA_VISIBLE_DEVICES": hides}, 0.1)
    with pytest.raises(UnavailableError) as caught:
        gpus.open()
    assert str(caught.value) == f"NVML: no GPU: CUDA_VISIBLE_DEVICES={hides}"
    assert (gpus.about["broken"], library.asked) == (False, [])


def test_an_engine_that_was_given_a_gpu_of_another_machine_has_none(library):
    gpus = NvidiaGpus({"CUDA_VISIBLE_DEVICES": "7"}, 0.1)
    with pytest.raises(UnavailableError) as caught:
        gpus.open()
    assert str(caught.value) == "NVML: 0 of 2 GPUs: CUDA_VISIBLE_DEVICES=7"
    assert gpus.about["broken"] is False, "the driver answered"


def test_a_driver_that_does_not_answer_in_time_is_there(library):
    gpus, while_it_opens = NvidiaGpus({}, 0.1), []
    library.answers["nvmlDeviceGetName"] = lambda _gpu: while_it_opens.append(gpus.about["broken"])
    gpus.open()
    assert (while_it_opens, gpus.about["broken"]) == ([True, True], False)


@pytest.fixture
def mig(library, monkeypatch):
    """GPU "b" is divided: of its instances 0 to 6 there are 2 and 5."""

    def instance(gpu, number):
        if number not in (2, 5):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"{gpu}{number}"

    def held(handle):
        return SimpleNamespace(total=80 * GIB, used=int(handle[1:] or 30) * GIB)

    library.answers |= {
        "nvmlDeviceGetMigMode": lambda gpu: [int(gpu == "b"), 0],
        "nvmlDeviceGetMemoryInfo": held,
    }
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMaxMigDeviceCount", lambda _gpu: 7)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigDeviceHandleByIndex", instance)
    return library


def test_each_instance_of_a_divided_gpu_has_its_own_memory(mig):
    gpus = fast(CUDA_VISIBLE_DEVICES="GPU-b5")
    (device,) = gpus.about["devices"]
    assert device["mig"] == [{"number": 2, "uuid": "GPU-b2"}, {"number": 5, "uuid": "GPU-b5"}]
    found = read(gpus)
    assert {name: value / GIB for name, value in found.items() if name.endswith("memory_used_bytes")} == {
        "gpu.1.memory_used_bytes": 30,
        "gpu.1.mig.2.memory_used_bytes": 2,
        "gpu.1.mig.5.memory_used_bytes": 5,
    }


def test_instances_that_cannot_be_read_are_missing_and_their_gpu_is_read(mig):
    """Both of one GPU: as many failures as there are GPUs."""
    for handle in ("b2", "b5"):
        mig.errors["nvmlDeviceGetMemoryInfo", handle] = pynvml.NVML_ERROR_NO_PERMISSION
    gpus = fast()
    assert read(gpus)["gpu.1.power_w"] == 312.5
    assert gpus.missing == {
        f"gpu.1.mig.{number}.memory_used_bytes": "NVML: Insufficient Permissions" for number in (2, 5)
    }
    del mig.errors["nvmlDeviceGetMemoryInfo", "b2"]
    read(gpus)
    assert set(gpus.missing) == {"gpu.1.mig.5.memory_used_bytes"}


def owners(*used):
    return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in used]


def test_memory_is_the_engine_s_or_that_of_others(library):
    own, other = os.getpid(), os.getppid()
    library.answers["nvmlDeviceGetComputeRunningProcesses"] = owners((own, 30 * GIB), (other, 2 * GIB))
    found = read(slow([own]))
    assert found["gpu.0.engine_memory_bytes"] == 30 * GIB
    assert found["gpu.0.other_memory_bytes"] == 2 * GIB
    assert not any(name.endswith("engine_memory_bytes") for name in read(slow()))


def test_memory_of_unknown_processes_or_sizes_is_nobody_s(library):
    own, gone = os.getpid(), 1 << 22  # above every pid
    library.answers["nvmlDeviceGetComputeRunningProcesses"] = owners((own, GIB), (gone, GIB))
    gpus = slow([own])
    assert not any("memory_bytes" in name for name in read(gpus))
    assert gpus.missing["gpu.*.engine_memory_bytes"] == "the GPU lists processes unknown here"
    library.answers["nvmlDeviceGetComputeRunningProcesses"] = owners((own, GIB))
    read(gpus)
    assert "gpu.*.engine_memory_bytes" not in gpus.missing
    library.answers["nvmlDeviceGetComputeRunningProcesses"] = owners((own, None))
    assert not any("memory_bytes" in name for name in read(slow([own])))


@pytest.fixture
def profiled(library, monkeypatch):
    """A chip that was at work for 10, 30, 50, … % of its time by its samples; DRAM half as much."""
    filled = {}
    places = iter(range(1, 9))

    def place(sample):
        return ctypes.cast(sample, ctypes.c_void_p).value

    def allocated():
        return ctypes.cast(next(places), pynvml.c_nvmlGpmSample_t)

    def sample(_gpu, into):
        filled[place(into)] = 10 + 20 * len(filled) if place(into) not in filled else 100

    def metrics(asked):
        passed = filled[place(asked.sample2)] - filled[place(asked.sample1)]
        values = {pynvml.NVML_GPM_METRIC_SM_UTIL: passed, pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL: passed / 2}
        for metric in asked.metrics[: asked.numMetrics]:
            metric.nvmlReturn = 0 if metric.metricId in values else NOT_SUPPORTED
            metric.value = values.get(metric.metricId, 77.0)

    library.answers["nvmlGpmQueryDeviceSupport"] = SimpleNamespace(isSupportedDevice=1)
    monkeypatch.setattr(pynvml, "nvmlGpmSampleAlloc", allocated)
    monkeypatch.setattr(pynvml, "nvmlGpmSampleGet", sample)
    monkeypatch.setattr(pynvml, "nvmlGpmMetricsGet", metrics)


def shares(found):
    return {name.removeprefix("gpu.0."): value for name, value in found.items() if "_active_" in name}


def test_shares_inside_the_chip_are_since_the_read_before(profiled):
    """The first sample is 10, the second 30, and the third, in the place of the first, 100."""
    gpus = slow()
    assert shares(read(gpus)) == {}
    assert shares(read(gpus)) == {"sm_active_pct": 20.0, "dram_active_pct": 10.0}
    assert shares(read(gpus)) == {"sm_active_pct": 70.0, "dram_active_pct": 35.0}


def test_a_chip_before_hopper_lacks_them_with_the_reason(library):
    gpus = slow()
    read(gpus)
    assert gpus.missing == {
        f"gpu.0.{name}": "NVML: Not Supported"
        for name in ("sm_active_pct", "tensor_active_pct", "dram_active_pct")
    }
