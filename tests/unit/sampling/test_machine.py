"""Facts about a machine, where the machine does not tell."""

import socket
from types import SimpleNamespace

import pytest

from harness.host import cpus
from harness.sampling import machine

OWN = {
    "eth0": [SimpleNamespace(family=socket.AF_INET, address="192.0.2.7", netmask="255.255.255.0")],
    "docker0": [SimpleNamespace(family=socket.AF_INET, address="172.17.0.1", netmask="255.255.0.0")],
    "odd0": [SimpleNamespace(family=socket.AF_INET6, address="fe80::1%odd0", netmask=None)],
}


@pytest.mark.parametrize(
    ("address", "ours"),
    [
        ("127.0.0.1", True),
        ("0.0.0.0", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.0.2.7", True),
        ("192.0.2.8", False),  # in our network, and another machine
        ("172.17.0.9", True),  # a container of ours
        ("172.18.0.9", False),
    ],
)
def test_whose_an_address_is(monkeypatch, address, ours):
    monkeypatch.setattr(machine.psutil, "net_if_addrs", lambda: OWN)
    assert machine.is_this_machine(address) is ours


def test_a_name_that_nobody_knows_is_not_ours(monkeypatch):
    def unknown(*_arguments, **_options):
        raise socket.gaierror

    monkeypatch.setattr(machine.socket, "getaddrinfo", unknown)
    assert not machine.is_this_machine("nowhere.invalid")


def test_processor_and_memory_are_what_the_kernel_says(monkeypatch):
    files = {"/proc/cpuinfo": "cores: 1\nmodel name\t: AMD EPYC\n", "/proc/meminfo": "MemTotal: 2048 kB"}
    monkeypatch.setattr(machine, "text_of", lambda path: files.get(str(path), ""))
    facts = machine.host_facts()
    assert (facts.cpu, facts.memory_bytes) == ("AMD EPYC", 2 << 20)


def test_what_cannot_be_read_is_none(monkeypatch):
    def unread(self, **_options):
        raise PermissionError

    monkeypatch.setattr(machine.Path, "read_text", unread)
    facts = machine.host_facts()
    assert (facts.cpu, facts.cpu_governor, facts.memory_bytes) == (None, None, None)
    assert facts.python


@pytest.mark.parametrize(
    ("listed", "features"),
    [
        ("flags\t\t: fpu sse2 avx avx2 avx512f amx_bf16 rdseed\n", ("amx_bf16", "avx", "avx2", "avx512f")),
        ("Features\t: fp asimd crc32 i8mm bf16\n", ("asimd", "bf16", "i8mm")),
        ("model name\t: AMD EPYC\n", None),
    ],
)
def test_cpus_of_one_name_are_told_apart_by_their_instructions(monkeypatch, tmp_path, listed, features):
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\n{listed}", encoding="utf-8")
    monkeypatch.setattr(cpus, "CPU_INFO", info)
    assert machine.host_facts().cpu_features == features
