"""Whether an environment can be made here is known before the first download: processor, Python, disk."""

import errno
import shutil
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.engines.provide import fitness, install, interpreters
from harness.engines.provide.fitness import free_bytes, unfit
from harness.errors import ExitCode
from harness.host import cpus
from harness.spec.backend_refs import load_backend


@pytest.fixture
def sglang(monkeypatch, tmp_path):
    """Its definition, on a machine that it fits, with an empty cache; nothing is ever installed."""
    cpu = tmp_path / "cpuinfo"
    cpu.write_text("processor\t: 0\nflags\t\t: sse4_2 avx avx2\n")
    monkeypatch.setattr(cpus, "CPU_INFO", cpu)
    monkeypatch.setattr(fitness.platform, "machine", lambda: "x86_64")
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(interpreters, "OURS", (3, 11))
    monkeypatch.setattr(install, "_build", lambda *_arguments: pytest.fail("it was being installed"))
    return load_backend("sglang")


def refused(capsys):
    """What `bench engines install sglang` says, in one error."""
    assert main(["engines", "install", "sglang", "--device", "cpu"]) == ExitCode.SETUP
    said = capsys.readouterr().err
    assert said.count("error: ") == 1
    return said


def test_nothing_is_said_where_it_fits(sglang):
    assert list(unfit(sglang, built=False)) == []


def test_another_processor_is_refused(sglang, monkeypatch, capsys):
    monkeypatch.setattr(fitness.platform, "machine", lambda: "aarch64")
    assert "error: sglang: its packages are for x86_64, and this machine is aarch64" in refused(capsys)


def test_a_cpu_without_avx2_is_refused(sglang, tmp_path, capsys):
    (tmp_path / "cpuinfo").write_text("flags\t\t: sse4_2 avx\n")
    assert "error: sglang: its packages need a CPU with AVX2, which this one does not have" in refused(capsys)
    (tmp_path / "cpuinfo").unlink()
    assert list(unfit(sglang, built=False)) == [], "where Linux lists none, nothing is known"


def test_an_environment_of_another_machine_is_refused_too(sglang, monkeypatch, tmp_path, capsys):
    """A home folder that several machines mount."""
    monkeypatch.setattr(install, "installed", lambda _definition: tmp_path)
    (tmp_path / "cpuinfo").write_text("flags\t\t: sse4_2 avx\n")
    assert "which this one does not have" in refused(capsys)


def test_a_python_without_packages_is_refused_with_those_that_have_them(sglang, monkeypatch, tmp_path):
    monkeypatch.setattr(interpreters, "OURS", (3, 16))
    monkeypatch.setenv("PATH", str(tmp_path))
    (error,) = unfit(sglang, built=False)
    assert error.what.startswith("its packages are made for Python 3.11, 3.12 and 3.13, not for 3.16")
    assert list(unfit(sglang, built=True)) == [], "the environment has its Python"


def test_a_disk_that_is_short_is_refused_before_the_first_download(sglang, monkeypatch, tmp_path, capsys):
    usage = shutil.disk_usage(tmp_path)._replace(free=1_500_000_000)
    monkeypatch.setattr(fitness.shutil, "disk_usage", lambda _place: usage)
    said = refused(capsys)
    assert f"about 2,930 MB are to be installed in {tmp_path / 'cache'}" in said
    assert "1,500 MB are free" in said
    assert "BENCH_CACHE" in said


def test_a_cache_below_a_folder_that_may_not_be_entered_has_no_room(monkeypatch, tmp_path):
    """HOME=/root in a container whose user is another one: a dry run ended in `permission denied`."""
    stat = Path.stat

    def closed(path, **options):
        if path != tmp_path and path.is_relative_to(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", closed)
    monkeypatch.setattr(fitness.os, "access", lambda path, _mode: path != tmp_path)
    assert free_bytes(tmp_path / "cache" / "engines") is None
