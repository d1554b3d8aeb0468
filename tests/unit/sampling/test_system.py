"""The machine as a whole: CPU seconds that were not idle, energy counters that wrap, what is absent."""

from types import SimpleNamespace

import psutil
import pytest

from harness.sampling.sources.system import System, busy_s
from tests.factories.sampled import read

TIMES = SimpleNamespace(
    user=10.0, nice=1.0, system=5.0, irq=0.25, softirq=0.5, steal=3.0, guest=2.0, idle=900.0, iowait=70.0
)


@pytest.fixture
def machine(monkeypatch):
    """What psutil says of it; a test changes it."""
    made = SimpleNamespace(
        cpu_times=TIMES,
        virtual_memory=SimpleNamespace(used=3 << 30, total=8 << 30),
        disk_io_counters=SimpleNamespace(read_bytes=11, write_bytes=22, read_count=1, write_count=2),
        net_io_counters=SimpleNamespace(bytes_recv=33, bytes_sent=44),
    )
    for name in vars(made):
        monkeypatch.setattr(psutil, name, lambda name=name: getattr(made, name))
    return made


def zone(powercap, number, name, microjoules):
    folder = powercap / f"intel-rapl:{number}"
    folder.mkdir(exist_ok=True)
    for file, text in (("name", name), ("max_energy_range_uj", 1_000_000), ("energy_uj", microjoules)):
        (folder / file).write_text(f"{text}\n")
    return folder


def opened(powercap, **options):
    system = System(1.0, powercap, **options)
    system.open()
    return system


def test_busy_is_what_was_not_idle_and_a_guest_is_not_counted_twice():
    assert busy_s(TIMES) == 19.75
    assert busy_s(SimpleNamespace(user=4.0, system=2.0, idle=9.0)) == 6.0  # of a system that counts no more


def test_counters_are_put_as_they_stand(machine, tmp_path):
    assert read(opened(tmp_path)) == {
        "host.cpu_busy_s": 19.75,
        "host.cpu_stolen_s": 3.0,
        "host.memory_used_bytes": 3 << 30,
        "host.disk_read_bytes": 11,
        "host.disk_written_bytes": 22,
        "host.net_received_bytes": 33,
        "host.net_sent_bytes": 44,
    }


def test_disks_and_network_are_read_at_every_fourth_beat_and_may_be_absent(machine, tmp_path):
    system = opened(tmp_path)
    assert ["host.net_sent_bytes" in read(system) for _ in range(6)] == [True, *[False] * 3, True, False]
    machine.disk_io_counters = machine.net_io_counters = None
    assert set(read(opened(tmp_path))) == {"host.cpu_busy_s", "host.cpu_stolen_s", "host.memory_used_bytes"}


def test_each_cpu_package_has_its_joules_and_its_parts_have_none(machine, tmp_path):
    zone(tmp_path, "1", "package-1", 250_000)
    zone(tmp_path, "0", "package-0", 900_000)
    zone(tmp_path, "0:0", "package-0-core", 700_000)
    zone(tmp_path, "2", "psys", 999_999)
    system = opened(tmp_path)
    assert system.about["cpu_packages"] == ["package-0", "package-1"]
    assert {name: value for name, value in read(system).items() if name.startswith("cpu.")} == {
        "cpu.0.energy_j": 0.9,
        "cpu.1.energy_j": 0.25,
    }
    assert system.missing == {}


def test_the_energy_goes_on_when_its_counter_wraps(machine, tmp_path):
    zone(tmp_path, "0", "package-0", 900_000)
    system = opened(tmp_path)
    found = [read(system)["cpu.0.energy_j"]]
    for microjoules in (100_000, 400_000, 399_999):
        zone(tmp_path, "0", "package-0", microjoules)
        found.append(read(system)["cpu.0.energy_j"])
    assert found == pytest.approx([0.9, 1.1, 1.4, 2.399999])


def test_the_energy_of_this_machine_is_not_that_of_an_engine_elsewhere(machine, tmp_path):
    zone(tmp_path, "0", "package-0", 900_000)
    system = opened(tmp_path, energy=False)
    assert "cpu.0.energy_j" not in read(system)
    assert system.missing == {"cpu.*.energy_j": "the engine runs on another machine"}


def test_a_counter_that_cannot_be_read_is_missing_with_the_reason(machine, tmp_path):
    """Most kernels let only root read it."""
    counter = zone(tmp_path, "0", "package-0", 1) / "energy_uj"
    system = opened(tmp_path)
    counter.unlink()
    assert read(system)["host.cpu_busy_s"] == 19.75
    assert system.missing == {"cpu.0.energy_j": f"{counter}: No such file or directory"}


def test_a_machine_without_counters_says_where_it_looked(machine, tmp_path):
    assert opened(tmp_path / "none").missing == {
        "cpu.*.energy_j": f"no RAPL energy counter of a CPU package under {tmp_path}/none"
    }
