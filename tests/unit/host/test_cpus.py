"""What Linux says of the machine's CPUs."""

import os

import pytest

from harness.host import cpus

WAITED = "some avg10=2.97 avg60=39.79 avg300=67.37 total=15845933387\nfull avg10=0.00 total=7\n"


@pytest.mark.parametrize(("text", "seconds"), [(WAITED, 15845.933387), ("", 0.0), (None, 0.0)])
def test_the_time_in_which_tasks_waited_for_a_cpu_is_in_seconds(tmp_path, monkeypatch, text, seconds):
    """It is 0 where the kernel does not count it."""
    file = tmp_path / "cpu"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(cpus, "PRESSURE", file)
    assert cpus.waited_for_cpu_s() == seconds


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """Writes what the kernel says of the cgroups of this process, which may run on 8 CPUs, or of another."""
    monkeypatch.setattr(cpus, "CGROUPS", tmp_path / "fs")
    monkeypatch.setattr(cpus, "PROCESSES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)

    def write(own, files, process="self"):
        (tmp_path / process).mkdir()
        (tmp_path / process / "cgroup").write_text(own)
        for name, text in files.items():
            file = tmp_path / "fs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    return write


V1 = "5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("own", "files", "quota", "usable"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2.0, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 0.5, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None, 8),
        ("0::/\n", {"cpu.max": "6400000 100000\n"}, 64.0, 8),
        ("0::/pod/one\n", {"pod/cpu.max": "300000 100000\n", "pod/one/cpu.max": "max 100000\n"}, 3.0, 3),
        ("0::/pod/one\n", {"pod/cpu.max": "300000 100000\n", "pod/one/cpu.max": "100000 50000\n"}, 2.0, 2),
        (V1, {"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0, 4),
        (V1, {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None, 8),
        ("0::/../elsewhere\n", {"cpu.max": "200000 100000\n"}, 2.0, 2),
        ("0::/\n", {}, None, 8),
    ],
)
def test_a_limit_of_cpu_time_counts_as_so_many_cpus(cgroups, own, files, quota, usable):
    cgroups(own, files)
    assert (cpus.cpu_quota(), cpus.usable_cpus()) == (quota, usable)
    assert cpus.computing_cpus() == max(1, usable - 1)


@pytest.mark.parametrize(
    ("path", "quota"),
    [
        ("/pod/one", 2.0),  # that of bench
        ("/pod/two", 2.5),
        ("/other", 2.5),
        ("/..", None),
        ("/../elsewhere", None),  # of another container: the root that is seen here is that of bench
        ("/host/slice", None),
    ],
)
def test_another_process_has_the_limit_of_its_own_cgroups(cgroups, path, quota):
    limits = {"": "250000", "pod/one/": "200000", "pod/two/": "300000", "other/": "max"}
    files = {f"{folder}cpu.max": f"{limit} 100000\n" for folder, limit in limits.items()}
    cgroups("0::/pod/one\n", files)
    cgroups(f"0::{path}\n", {}, process="200")
    assert cpus.cpu_quota(200) == quota
    assert cpus.cpu_quota(404) is None


@pytest.mark.parametrize(("cpuset", "computing"), [("0-15", 15), ("0-3,8", 4), ("0", 1), ("", 7), ("all", 7)])
def test_an_engine_in_a_container_computes_on_the_cpus_of_that(cgroups, cpuset, computing):
    cgroups("", {})
    assert cpus.computing_cpus(cpuset) == computing
