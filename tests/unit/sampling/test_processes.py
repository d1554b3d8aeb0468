"""Processes of the engine and of the client: who belongs to whom, sums that never fall, what is hidden."""

import os
import shutil
from types import SimpleNamespace

import psutil
import pytest

from harness.sampling.job import Watch
from harness.sampling.sources import UnreadableError, processes
from harness.sampling.sources.processes import Processes, listener
from tests.factories.sampled import read

BENCH, ENGINE = 100, 200
MB = 1_000_000


class Host:
    """Processes by pid with their figures, and /proc in a folder, where their threads list their children."""

    def __init__(self, proc):
        self.proc, self.alive = proc, {}

    def start(self, pid, parent=None, thread=None, **figures):
        usual = {"user": 0.0, "system": 0.0, "waited_for": 0.0, "rss": MB, "threads": 1, "read": 0}
        self.alive[pid] = SimpleNamespace(**{**usual, "written": 0, "name": f"p{pid}", **figures})
        (self.proc / f"{pid}/task/{pid}").mkdir(parents=True)
        (self.proc / f"{pid}/task/{pid}/children").write_text("")
        if parent is not None:
            listed = self.proc / f"{parent}/task/{thread or parent}/children"
            listed.parent.mkdir(exist_ok=True)
            before = listed.read_text() if listed.exists() else ""
            listed.write_text(f"{before}{pid} ")

    def end(self, pid):
        """Nobody waits for it: no parent gets its time."""
        del self.alive[pid]
        shutil.rmtree(self.proc / str(pid))
        for listed in self.proc.glob("*/task/*/children"):
            listed.write_text("".join(f"{one} " for one in listed.read_text().split() if one != str(pid)))

    def process(self, pid=None):
        return SimpleNamespace(pid=os.getpid()) if pid is None else Process(self, pid)


class Process:
    """As psutil's: every figure raises once it has ended."""

    def __init__(self, host, pid):
        self._host, self._pid = host, pid
        self.figures()

    def figures(self):
        if self._pid not in self._host.alive:
            raise psutil.NoSuchProcess(self._pid)
        return self._host.alive[self._pid]

    def name(self):
        return self.figures().name

    def cpu_times(self):
        own = self.figures()
        return SimpleNamespace(
            user=own.user, system=own.system, children_user=own.waited_for, children_system=0.0
        )

    def memory_info(self):
        return SimpleNamespace(rss=self.figures().rss)

    def num_threads(self):
        return self.figures().threads

    def io_counters(self):
        own = self.figures()
        if own.read is None:
            raise psutil.AccessDenied(self._pid)
        return SimpleNamespace(read_bytes=own.read, write_bytes=own.written)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """The client with the engine as its child, and this process, which samples."""
    made = Host(tmp_path / "proc")
    monkeypatch.setattr(processes, "Path", lambda name: tmp_path / name.lstrip("/"))
    monkeypatch.setattr(psutil, "Process", made.process)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set())  # of none of this machine's
    made.start(BENCH, user=5.0)
    made.start(ENGINE, BENCH, user=10.0, system=2.0, rss=7 * MB, threads=3, name="vllm")
    return made


def opened(**watch):
    source = Processes(Watch(bench_pid=BENCH, **{"engine_pid": ENGINE, **watch}), 1.0)
    source.open()
    return source


def test_figures_of_both_are_sums_over_their_own_processes(host):
    """A worker hangs on the second thread of the engine, and has a child; the client started the sampler."""
    host.start(300, ENGINE, thread=201, user=1.0, system=0.5, rss=2 * MB, read=30, written=40)
    host.start(400, 300, user=0.25, threads=2, name="ninja")
    host.start(101, BENCH, user=0.5, read=11, written=12)
    host.start(os.getpid(), BENCH, user=77.0)
    host.alive[ENGINE].waited_for = 0.5  # of children that ended before
    source = opened()
    assert read(source) == {
        "client.cpu_s": 5.5,
        "client.rss_bytes": 2 * MB,
        "client.threads": 2,
        "client.read_bytes": 11,
        "client.written_bytes": 12,
        "server.cpu_s": 14.25,
        "server.process.200.cpu_s": 12.0,
        "server.process.300.cpu_s": 1.5,
        "server.process.400.cpu_s": 0.25,
        "server.rss_bytes": 10 * MB,
        "server.threads": 6,
        "server.read_bytes": 30,
        "server.written_bytes": 40,
    }
    assert source.engine_pids() == {200, 300, 400}
    assert source.about == {
        "engine_pid": 200,
        "engine_processes": {"200": "vllm", "300": "p300", "400": "ninja"},
    }
    assert source.missing == {}


def test_limits_of_cpu_time_are_kept_of_whom_has_one(host, monkeypatch):
    """The engine's cgroups may be others than those of bench."""
    host.start(300)
    limits = {None: None, ENGINE: 2.0, 300: 4.0}
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: limits[process])
    assert opened().about["cpu_quotas"] == {"server": 2.0}
    limits[None] = 1.5
    assert opened().about["cpu_quotas"] == {"client": 1.5, "server": 2.0}
    monkeypatch.setattr(processes, "listener", lambda port: {8000: ENGINE, 8001: 300}[port])
    several = opened(engine_pid=None, engine_ports=(8000, 8001))
    assert several.about["cpu_quotas"] == {"client": 1.5}  # they may share one limit


def test_the_cpus_that_any_thread_of_the_engine_may_run_on_are_its_limit(host, monkeypatch):
    """A worker that binds itself to one CPU leaves the engine those of the others."""
    host.start(300, ENGINE)
    bound = {ENGINE: {0, 1}, 300: {1}, BENCH: set(range(16))}
    monkeypatch.setattr(os, "sched_getaffinity", bound.__getitem__)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 16)
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: None)
    assert opened().about["cpu_quotas"] == {"server": 2}
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: 0.5 if process else None)
    assert opened().about["cpu_quotas"] == {"server": 0.5}
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: 4.0 if process else None)
    assert opened().about["cpu_quotas"] == {"server": 2}
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: None)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    assert "cpu_quotas" not in opened().about


def test_the_cpus_that_the_load_generator_is_bound_to_are_its_limit(host, monkeypatch):
    """`taskset -c 0-2 bench …`, against an engine that may use them all."""
    host.start(101, BENCH)
    bound = {BENCH: {0, 1, 2}, 101: {1}, ENGINE: set(range(16))}
    monkeypatch.setattr(os, "sched_getaffinity", bound.__getitem__)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 16)
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: None)
    assert opened().about["cpu_quotas"] == {"client": 3}
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: None if process else 2.5)
    assert opened().about["cpu_quotas"] == {"client": 2.5}


def test_a_thread_that_ended_hides_no_cpu_of_the_others(host, monkeypatch):
    bound = {200: {0}, 202: {1}, 204: {2}, 206: {3}}
    for thread in range(201, 208):
        (host.proc / f"{ENGINE}/task/{thread}").mkdir()

    def affinity(thread):
        if thread in bound:
            return bound[thread]
        raise ProcessLookupError

    monkeypatch.setattr(os, "sched_getaffinity", affinity)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 16)
    monkeypatch.setattr(processes, "cpu_quota", lambda process=None: None)
    assert opened().about["cpu_quotas"] == {"server": 4}


PARTNER = 500


@pytest.fixture
def pair(host):
    """Another engine below the client, with a worker."""
    host.start(PARTNER, BENCH, user=30.0)
    host.start(501, PARTNER, user=8.0)
    return host


def test_an_engine_that_is_up_as_well_is_no_part_of_the_client(pair):
    found = read(opened(partner_pids=(PARTNER,)))
    assert (found["client.cpu_s"], found["client.rss_bytes"], found["client.threads"]) == (5.0, MB, 1)
    assert found["server.cpu_s"] == 12.0
    assert "partner.cpu_s" not in found


def test_one_that_is_loaded_at_the_same_time_has_figures_of_its_own(pair):
    source = opened(partner_pids=(PARTNER,), duet=True)
    found = read(source)
    assert (found["partner.cpu_s"], found["client.cpu_s"]) == (38.0, 5.0)
    assert not any(name.startswith("partner.process") for name in found)
    for pid in (501, PARTNER):
        pair.end(pid)
    found = read(source)
    assert "partner.cpu_s" not in found
    assert found["server.cpu_s"] == 12.0


def test_cpu_time_never_falls_whoever_waits_for_a_process(host):
    host.start(300, ENGINE, user=4.0)
    host.start(301, ENGINE, user=1.0)
    source = opened()
    assert read(source)["server.cpu_s"] == 17.0
    host.end(300)
    host.alive[ENGINE].waited_for = 4.0  # its time moved to its parent
    assert read(source)["server.cpu_s"] == 17.0
    host.end(301)  # nobody waits for it
    host.alive[ENGINE].user += 0.5
    assert read(source)["server.cpu_s"] == 17.0
    host.alive[ENGINE].user += 2.0
    assert read(source)["server.cpu_s"] == 19.0


def test_bytes_of_a_process_that_ended_are_not_read_again(host):
    """A counter that falls is taken for one that restarted: all the others' bytes would count twice."""
    host.alive[ENGINE].read, host.alive[ENGINE].written = 5 * MB, 8
    host.start(300, ENGINE, read=MB, written=2)
    source = opened()
    found = [read(source)]
    host.end(300)
    found += [read(source) for _ in range(4)]
    assert [one["server.read_bytes"] for one in found if "server.read_bytes" in one] == [6 * MB, 6 * MB]
    assert [one["server.written_bytes"] for one in found if "server.written_bytes" in one] == [10, 10]


def test_a_new_process_is_found_at_every_fourth_read(host):
    source = opened()
    read(source)
    host.start(300, ENGINE)
    assert ["server.process.300.cpu_s" in read(source) for _ in range(4)] == [False, False, False, True]


def test_an_engine_that_is_gone_cannot_be_read_and_the_client_was(host):
    source = opened()
    read(source)
    host.end(ENGINE)
    found = {}
    with pytest.raises(UnreadableError) as caught:
        source.read(lambda name, value: found.update({name: value}))
    assert str(caught.value) == "process 200 is gone"
    assert found["client.cpu_s"] == 5.0
    assert "server.rss_bytes" not in found


def test_what_another_user_s_process_reads_is_missing_and_its_cpu_time_is_not(host):
    host.alive[ENGINE].read = None
    source = opened()
    found = read(source)
    assert found["server.cpu_s"] == 12.0
    assert "server.read_bytes" not in found
    reason = "this user may not see what the process reads and writes"
    assert source.missing == {"server.read_bytes": reason, "server.written_bytes": reason}


def test_of_very_many_processes_all_count_and_some_have_a_series(host):
    for pid in range(300, 340):
        host.start(pid, ENGINE, user=1.0)
    found = read(opened())
    assert found["server.cpu_s"] == 52.0
    assert len([name for name in found if name.startswith("server.process.")]) == 32


LISTEN, ESTABLISHED = psutil.CONN_LISTEN, psutil.CONN_ESTABLISHED


@pytest.fixture
def listening(host, monkeypatch):
    """Of port 8000 Docker's proxy and two workers, and a client of theirs; of port 8001 nobody to be seen."""
    host.start(50, name="docker-proxy")
    host.start(201, ENGINE)
    connections = [(50, 8000, LISTEN), (201, 8000, LISTEN), (ENGINE, 8000, LISTEN)]
    connections += [(60, 8000, ESTABLISHED), (None, 8001, LISTEN)]
    found = [
        SimpleNamespace(pid=pid, status=status, laddr=SimpleNamespace(port=port))
        for pid, port, status in connections
    ]
    monkeypatch.setattr(psutil, "net_connections", lambda _kind: found)
    return host


def test_the_engine_is_who_listens_on_its_port_and_not_docker_s_proxy(listening):
    assert listener(8000) == ENGINE
    assert [listener(port) for port in (8001, 8002)] == [None, None]
    source = opened(engine_pid=None, engine_ports=(8000,))
    assert source.about["engine_pid"] == ENGINE
    assert "server.cpu_s" in read(source)


def test_a_server_that_is_loaded_as_well_and_was_there_before_bench_is_no_other_work(listening):
    listening.start(300, ENGINE, user=1.0)
    source = opened(engine_pid=300, partner_ports=(8000, 8001), duet=True)
    assert read(source)["partner.cpu_s"] == 13.0
    same = opened(engine_pid=None, engine_ports=(8000,), partner_ports=(8000,), duet=True)
    assert "partner.cpu_s" not in read(same)


def test_where_connections_may_not_be_seen_nobody_listens(listening, monkeypatch):
    def refuse(_kind):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refuse)
    assert listener(8000) is None


@pytest.mark.parametrize("ports", [(), (8000, 8001)])
def test_a_part_of_the_engine_is_not_shown_as_all_of_it(listening, ports):
    source = opened(engine_pid=None, engine_ports=ports)
    assert not any(name.startswith("server.") for name in read(source))
    assert source.missing == {"server.*": "the engine's process is not known or not on this machine"}
    assert source.engine_pids() == frozenset()
