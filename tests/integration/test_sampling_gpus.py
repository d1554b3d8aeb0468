"""The sampler's process on a machine with two GPUs, through the real pynvml and a stub of NVML's library."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pynvml
import pytest

from harness.engines.speak.prometheus import totals
from harness.metrics import cost, gpus
from harness.metrics.window import Window
from harness.mockserver import running
from harness.model import Prices
from harness.run.measure.watch import gpu_env
from harness.sampling.job import Watch
from harness.sampling.watcher import Watcher
from tests.integration.nvml import Machine, build

GIB = 1 << 30


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(library, tmp_path, monkeypatch):
    (tmp_path / "gpus").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    monkeypatch.setenv("NVML_STUB", str(tmp_path / "gpus"))
    return Machine(tmp_path / "gpus")


def watch(seconds, **changes):
    """What was sampled and what the sampler says, of itself and so many seconds."""
    with Watcher(Watch(bench_pid=os.getpid(), engine_pid=os.getpid(), **changes)) as watcher:
        t0 = time.monotonic_ns()
        time.sleep(seconds)
        telemetry = watcher.stop(t0)
    return telemetry, watcher.sampled.sources


def watch_losing(machine, seconds, *names):
    """The same of a machine that loses GPUs half way, and when that was; stamps are of the clock itself."""
    with Watcher(Watch(bench_pid=os.getpid(), engine_pid=os.getpid())) as watcher:
        time.sleep(seconds / 2)
        lost_ns = time.monotonic_ns()
        for name in names:
            machine.set(name)
        time.sleep(seconds / 2)
        telemetry = watcher.stop(0)
    return telemetry, watcher.sampled.sources, lost_ns


def test_two_gpus_are_read_ten_times_a_second(machine):
    machine.set("busy")
    machine.set("processes", f"0 {os.getpid()} {30 * GIB}\n0 1 {2 * GIB}\n")
    telemetry, sources = watch(2.4)
    assert [device["name"] for device in sources["nvidia"].about["devices"]] == ["Stub GPU 0", "Stub GPU 1"]
    power = telemetry.get("gpu.1.power_w")
    assert 20 <= len(power.values) <= 32
    assert set(power.values) == {300.0}
    assert set(telemetry.get("gpu.0.utilisation_pct").values) == {99.0}
    assert set(telemetry.get("gpu.1.utilisation_pct").values) == {89.0}
    counted = telemetry.get("gpu.0.energy_j")
    seconds = (counted.at_ns[-1] - counted.at_ns[0]) / 1e9
    assert counted.values[-1] - counted.values[0] == pytest.approx(300 * seconds, rel=0.02)
    assert set(telemetry.get("gpu.0.engine_memory_bytes").values) == {30.0 * GIB}
    assert set(telemetry.get("gpu.0.other_memory_bytes").values) == {2.0 * GIB}
    assert set(telemetry.get("gpu.1.engine_memory_bytes").values) == {0.0}
    assert set(telemetry.get("gpu.0.dram_active_pct").values) == {50.0}
    for name in ("sm_clock_mhz", "temperature_c", "throttle_bits", "pcie_received_bytes_per_s"):
        assert 2 <= len(telemetry.get(f"gpu.0.{name}").values) <= 5, "read less often"
    assert sources["nvidia"].missing == sources["nvidia-slow"].missing == {}


def test_a_field_that_one_gpu_lacks_is_missing_there_with_the_reason(machine):
    machine.set("no-energy-1")
    machine.set("no-instant-1")
    machine.set("no-gpm-1")
    telemetry, sources = watch(1.0)
    assert sources["nvidia"].missing == {}
    missing = sources["nvidia-slow"].missing
    assert missing["gpu.1.energy_j"] == "NVML: Not Supported"
    assert set(missing) == {
        f"gpu.1.{name}" for name in ("energy_j", "sm_active_pct", "tensor_active_pct", "dram_active_pct")
    }
    assert "gpu.1.energy_j" not in telemetry.series
    assert len(telemetry.get("gpu.0.energy_j").values) >= 2
    assert set(telemetry.get("gpu.1.power_w").values) == {60.0}, "its own average takes the place"
    assert sources["nvidia"].failures == 0


def test_a_gpu_lost_on_the_way_leaves_the_other(machine):
    telemetry, sources, lost_ns = watch_losing(machine, 3.0, "lost-1")
    lost = sources["nvidia"].about["lost"]
    assert list(lost) == ["gpu.1"]
    assert lost["gpu.1"]["why"] == "GPU is lost"
    assert sources["nvidia"].missing == {"gpu.1.*": "NVML: GPU is lost"}
    kept, gone = telemetry.get("gpu.0.power_w"), telemetry.get("gpu.1.power_w")
    noticed_ns = lost["gpu.1"]["at_ns"]
    assert lost_ns < noticed_ns < kept.at_ns[-1]
    assert gone.at_ns[-1] < noticed_ns
    assert gone.at_ns[-1] - lost_ns > -0.3e9
    assert kept.at_ns[-1] - lost_ns > 1.2e9
    assert sources["nvidia"].failing_since_s is None, "the source as a whole went on"


def test_a_gpu_lost_before_the_start_leaves_the_other_its_number(machine):
    machine.set("fallen-0")
    machine.set("processes", f"1 {os.getpid()} {30 * GIB}\n")
    telemetry, sources = watch(1.4)
    assert set(telemetry.get("gpu.1.power_w").values) == {60.0}
    assert set(telemetry.get("gpu.1.engine_memory_bytes").values) == {30.0 * GIB}
    assert "gpu.0.power_w" not in telemetry.series
    for name in ("nvidia", "nvidia-slow"):
        assert sources[name].about["lost"]["gpu.0"]["why"] == "GPU is lost"
        assert (sources[name].unavailable, sources[name].about["broken"]) == ("", False)
    found, _ = gpus.describe(telemetry, sources, Window(0, 1_000_000_000, "whole"))
    assert (found.engine_gpus, found.power_w.mean) == ((1,), 60)


def test_all_gpus_lost_is_a_source_that_failed(machine):
    _telemetry, sources, lost_ns = watch_losing(machine, 2.0, "lost-0", "lost-1")
    assert sources["nvidia"].failing_since_s * 1e9 - lost_ns > -0.2e9
    assert sources["nvidia"].failures >= 2, "the last look was not the first that failed"
    assert "GPU is lost" in sources["nvidia"].last_failure


def test_a_driver_of_another_version_is_a_fault_and_no_library_is_not(machine, monkeypatch):
    machine.set("mismatch")
    _telemetry, sources = watch(0.4)
    assert "version mismatch" in sources["nvidia"].unavailable
    assert sources["nvidia"].about["broken"]
    monkeypatch.delenv("LD_LIBRARY_PATH")
    telemetry, sources = watch(0.4)
    assert sources["nvidia"].unavailable == "NVML: NVML Shared Library Not Found"
    assert not sources["nvidia"].about["broken"]
    assert not any(name.startswith("gpu.") for name in telemetry.series)
    assert len(telemetry.get("host.cpu_busy_s").values) >= 2, "all else is sampled"


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-00000001"}, [1]),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "0,7,1"}, [0]),  # as CUDA does
    ],
)
def test_the_gpus_are_those_the_engine_was_given(machine, given, chosen):
    telemetry, sources = watch(0.4, engine_env=given)
    assert [device["index"] for device in sources["nvidia"].about["devices"]] == chosen
    assert {name.split(".")[1] for name in telemetry.series if name.startswith("gpu.")} == {
        str(index) for index in chosen
    }


def test_an_engine_without_a_gpu_has_none(machine):
    _telemetry, sources = watch(0.4, engine_env={"CUDA_VISIBLE_DEVICES": ""})
    assert sources["nvidia"].unavailable == "NVML: no GPU: CUDA_VISIBLE_DEVICES="


def test_mig_instances_have_their_memory_and_the_gpu_its_power(machine):
    machine.set("mig-1", "2")
    telemetry, sources = watch(1.0, engine_env={"CUDA_VISIBLE_DEVICES": "MIG-00010001"})
    (device,) = sources["nvidia"].about["devices"]
    assert device["index"] == 1
    assert [instance["number"] for instance in device["mig"]] == [0, 1]
    assert set(telemetry.get("gpu.1.mig.1.memory_used_bytes").values) == {6.0 * GIB}
    assert sources["nvidia"].missing == {
        "gpu.1.utilisation_pct": "NVML: Not Supported",
        "gpu.1.memory_utilisation_pct": "NVML: Not Supported",
    }
    assert set(telemetry.get("gpu.1.power_w").values) == {60.0}


def running_requests(url):
    with urlopen(f"{url}/metrics") as answer:
        return totals(answer.read().decode(), ["vllm:num_requests_running"])["vllm:num_requests_running"]


def test_a_run_on_two_gpus_has_energy_cost_and_a_limiter(machine, tmp_path):
    """The engine sits on GPU 0 only: GPU 1 is idle and counts for nothing."""
    with running(ttft_ms=100, gap_ms=20) as server:
        machine.set("processes", f"0 {server.pid} {30 * GIB}\n")
        run = [sys.executable, "-m", "harness", "run", "--scenario", "fixed-length"]
        asked = ["--backends", f"vllm={server.url}", "--concurrency", "4", "--requests", "60"]
        flags = ["--output-tokens", "16", "--price-per-gpu-hour", "3.60EUR", "--no-probe", "--no-report"]
        process = subprocess.Popen([*run, *asked, *flags], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        next(line for line in process.stderr if "preparing" in line)  # what was asked before is not the cell
        deadline = time.monotonic() + 60
        while running_requests(server.url) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        machine.set("busy")
        _out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (folder,) = (tmp_path / "results").iterdir()
    summary = json.loads((folder / "summary.json").read_text())
    (cell,) = summary["cells"]
    gpu, energy, cost = cell["gpu"], cell["energy"], cell["cost"]
    assert gpu["engine_gpus"] == [0]
    assert gpu["engine_memory_bytes"]["max"] == 30 * GIB
    assert energy["scope"] == "gpu"
    assert energy["gpu_w"] == pytest.approx(300, rel=0.1), "less what was used before it got busy"
    assert energy["gpu_idle_w"] == pytest.approx(60, rel=0.05)
    assert cell["joules_per_output_token"] == pytest.approx(energy["gpu_w"] / cell["output_tokens_per_s"])
    assert energy["joules_per_output_token_above_idle"] == pytest.approx(
        (energy["gpu_w"] - energy["gpu_idle_w"]) / cell["output_tokens_per_s"]
    )
    assert cost["price"] == {
        "per_hour": 3.6,
        "currency": "EUR",
        "covers": "1 × Stub GPU 0",
        "source": "--price-per-gpu-hour",
    }
    assert cell["cost_per_million_output_tokens"] == pytest.approx(
        3.6 / 3600 / cell["output_tokens_per_s"] * 1e6
    )
    assert gpu["utilisation_pct"]["max"] == 99
    assert gpu["idle_utilisation_pct"] == 0
    assert cell["limiter"]["code"] == "gpu"
    assert Path(folder, "cells", cell["cell"], "telemetry.parquet").exists()


def real_gpus():
    try:
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError:
        return 0


def check_readings(telemetry, sources, seconds):
    """Every field was read at its rate, or its reason is given; power agrees with the counter of energy."""
    nvidia, slow = sources["nvidia"], sources["nvidia-slow"]
    missing = nvidia.missing | slow.missing
    assert nvidia.unavailable == slow.unavailable == ""
    assert nvidia.failures == slow.failures == 0
    for device in nvidia.about["devices"]:
        name = f"gpu.{device['index']}"
        for field, per_s in (
            ("utilisation_pct", 8),
            ("memory_used_bytes", 8),
            ("power_w", 8),
            ("energy_j", 0.8),
        ):
            samples = telemetry.get(f"{name}.{field}")
            assert len(samples.values) > per_s * seconds or f"{name}.{field}" in missing, field
            assert (samples.values >= 0).all()
        counted = telemetry.get(f"{name}.energy_j")
        if len(counted.values):
            elapsed_s = (counted.at_ns[-1] - counted.at_ns[0]) / 1e9
            watts = (counted.values[-1] - counted.values[0]) / elapsed_s
            assert watts == pytest.approx(telemetry.get(f"{name}.power_w").values.mean(), rel=0.2)


def test_the_check_of_a_real_gpu_passes_on_the_stub(machine):
    check_readings(*watch(2.4), seconds=2.0)


@pytest.mark.gpu
@pytest.mark.skipif(not real_gpus(), reason="no NVIDIA GPU on this machine")
def test_a_real_gpu_is_read_within_two_per_cent_of_a_core():
    telemetry, sources = watch(10.0)
    check_readings(telemetry, sources, seconds=10.0)
    cpu_s = telemetry.get("sampler.cpu_s").values
    assert cpu_s[-1] < 0.02 * 10.0 * len(sources["nvidia"].about["devices"])


def test_an_engine_on_the_cpu_of_a_gpu_machine_is_not_on_its_gpus(machine):
    """The GPUs are somebody else's: their energy is not its energy."""
    machine.set("processes", f"0 {os.getppid()} {30 * GIB}\n")
    telemetry, sources = watch(2.4)
    found, reason = gpus.describe(telemetry, sources, Window(0, 2_000_000_000, "whole"))
    assert reason == ""
    assert found.engine_gpus == ()
    assert found.power_w is None
    priced, why = cost.price(Prices("USD", "list", gpu_per_hour={"*": 1.0}), found)
    assert priced is None
    assert "not seen on one" in why


@pytest.mark.parametrize(
    ("facts", "env"),
    [
        ({"container": {"device": "cuda", "gpus": ["0", "GPU-7"]}}, {"NVIDIA_VISIBLE_DEVICES": "0,GPU-7"}),
        ({"container": {"device": "cpu", "gpus": []}}, {"NVIDIA_VISIBLE_DEVICES": ""}),
        ({"container": {"device": "rocm", "gpus": []}, "env": {"HIP_VISIBLE_DEVICES": "1"}},
         {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "3"}),
        ({"env": {"CUDA_VISIBLE_DEVICES": "2"}}, {"CUDA_VISIBLE_DEVICES": "2"}),
        ({}, {"CUDA_VISIBLE_DEVICES": "3"}),
    ],
)  # fmt: skip
def test_the_gpus_of_a_container_are_those_it_got(monkeypatch, facts, env):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert gpu_env(facts) == env
