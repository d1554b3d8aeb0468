"""Cores shared out and given back; CPU seconds told apart."""

import os

import pytest

from harness.doctor.cores import Usage, pin, shared_out


@pytest.fixture
def affinity(monkeypatch):
    """The calls that change it, on a machine of three usable cores."""
    calls = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {2, 5, 7})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: calls.append((pid, set(cores))))
    return calls


def test_the_server_has_a_core_of_its_own_and_the_client_the_others_until_the_end(affinity):
    def examine():
        with shared_out() as core:
            pin(99, core)
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        examine()
    assert affinity == [(0, {5, 7}), (99, {2}), (0, {2, 5, 7})]


def test_a_single_core_is_shared(affinity, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    with shared_out() as core:
        pin(99, core)
    assert (core, affinity) == (None, [])


def test_other_work_is_what_neither_client_nor_server_used():
    before = Usage(at_s=10, ours_s=1, server_s=2, machine_s=100)
    after = Usage(at_s=12, ours_s=1.5, server_s=3, machine_s=104)
    assert after.server_cores_since(before) == 0.5
    assert after.other_cores_since(before) == pytest.approx(2 - 0.25 - 0.5)


@pytest.mark.parametrize("missing", ["server_s", "machine_s"])
def test_other_work_is_not_known_where_a_part_is_not(missing):
    known = {"at_s": 10.0, "ours_s": 1.0, "server_s": 2.0, "machine_s": 100.0}
    assert Usage(**known | {"at_s": 12.0}).other_cores_since(Usage(**known | {missing: None})) is None


def test_usage_of_this_process_grows():
    before = Usage.now(os.getpid())
    sum(range(3_000_000))
    assert Usage.now(os.getpid()).ours_s > before.ours_s
    assert Usage.now(2**22 + 1).server_s is None
