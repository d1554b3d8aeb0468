"""The processes of the engine and of our own load generator."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from harness.host.cpus import cpu_quota
from harness.sampling.job import Watch
from harness.sampling.sources import Put, Source, UnreadableError

_LOOK_EVERY = 4  # reads between two looks for new processes
_MOST_NAMED = 32  # processes of the engine that get a series of their own


class Rising:
    """A counter summed over processes, which does not fall when one of them ends.

    What a child counted moves to its parent when it is waited for; one that nobody waits for takes it along.
    """

    def __init__(self) -> None:
        self._lost = self._last = 0.0

    def after(self, total: float) -> float:
        self._lost += max(0.0, self._last - total)
        self._last = total
        return total + self._lost


class Tree:
    """Processes and their descendants."""

    def __init__(self, roots: frozenset[int], without: frozenset[int] = frozenset()) -> None:
        self._roots, self._without = roots, without
        self.processes: dict[int, psutil.Process] = {}
        self._cpu_s, self._read, self._written = Rising(), Rising(), Rising()

    def look(self) -> None:
        """Finds processes through the kernel's lists of children: a look at every process of a machine costs
        milliseconds."""
        pids = list(self._roots)
        for pid in pids:
            pids += (child for child in _children(pid) if child not in self._without)
        for pid in self.processes.keys() - set(pids):
            del self.processes[pid]
        for pid in set(pids) - self.processes.keys():
            try:
                self.processes[pid] = psutil.Process(pid)
            except psutil.Error:  # it came and went
                continue

    def read(self, name: str, put: Put, *, each: bool) -> None:
        """Raises UnreadableError if none is left. `each`: processes get series of their own too.

        Without `oneshot`, which costs more than the two files that are read here.
        """
        cpu_s = rss = 0.0
        alive = 0
        for pid, process in self.processes.items():
            try:
                times = process.cpu_times()
                rss += process.memory_info().rss
            except psutil.Error:
                continue
            used_s = times.user + times.system
            cpu_s += used_s + times.children_user + times.children_system
            alive += 1
            if each and alive <= _MOST_NAMED:
                put(f"{name}.process.{pid}.cpu_s", used_s)
        if not alive:
            raise UnreadableError(f"process {', '.join(map(str, sorted(self._roots)))} is gone")
        put(f"{name}.cpu_s", self._cpu_s.after(cpu_s))
        put(f"{name}.rss_bytes", rss)

    def read_threads(self, name: str, put: Put) -> None:
        threads = 0
        for process in self.processes.values():
            with suppress(psutil.Error):
                threads += process.num_threads()
        put(f"{name}.threads", threads)

    def read_io(self, name: str, put: Put) -> str:
        """The reason it cannot be read, or ""."""
        counted = []
        for process in self.processes.values():
            try:
                counted.append(process.io_counters())
            except psutil.NoSuchProcess:
                continue
            except psutil.Error:
                return "this user may not see what the process reads and writes"
        put(f"{name}.read_bytes", self._read.after(sum(counters.read_bytes for counters in counted)))
        put(f"{name}.written_bytes", self._written.after(sum(counters.write_bytes for counters in counted)))
        return ""

    def bound_cpus(self) -> int | None:
        """CPUs that any of the threads may run on, by a container's cpuset or a binding; None: all, or not
        known.
        """
        if not hasattr(os, "sched_getaffinity"):
            return None
        self.look()
        cpus: set[int] = set()
        for pid in self.processes:
            for task in Path(f"/proc/{pid}/task").glob("*"):
                with suppress(OSError):  # it ended
                    cpus |= os.sched_getaffinity(int(task.name))
        return len(cpus) if 0 < len(cpus) < (psutil.cpu_count() or 0) else None

    def names(self) -> Iterable[tuple[str, str]]:
        """The pid, as text for JSON, and the name of each process."""
        for pid, process in self.processes.items():
            try:
                yield str(pid), process.name()
            except psutil.Error:
                continue


class Processes(Source):
    def __init__(self, watch: Watch, period_s: float) -> None:
        self.period_s = period_s
        self.missing = {}
        self.about = {}
        self._names: dict[str, str] = {}
        self._watch = watch
        self._reads = 0
        self._engine: Tree | None = None
        self._partners: Tree | None = None

    def open(self) -> None:
        watch = self._watch
        pids = {watch.engine_pid} if watch.engine_pid is not None else set(map(listener, watch.engine_ports))
        roots = frozenset(pid for pid in pids if pid is not None)
        if not roots or None in pids:  # a part of the engine would be shown as all of it
            roots = frozenset()
            self.missing["server.*"] = "the engine's process is not known or not on this machine"
        else:
            self._engine = Tree(roots)
            self.about["engine_pid"] = min(roots)
        listeners = {pid for pid in map(listener, watch.partner_ports) if pid is not None}
        partners = frozenset(watch.partner_pids) | (listeners - roots)  # one server may be both
        self._client = Tree(frozenset({watch.bench_pid}), roots | partners | {psutil.Process().pid})
        own = cpu_quota(*roots) if len(roots) == 1 else None
        limits = {
            "client": (cpu_quota(), self._client.bound_cpus()),
            "server": (own, self._engine.bound_cpus() if self._engine is not None else None),
        }
        least = {name: min(known) for name, both in limits.items() if (known := list(filter(None, both)))}
        if least:
            self.about["cpu_quotas"] = least
        if watch.duet and partners:
            self._partners = Tree(partners)

    def engine_pids(self) -> frozenset[int]:
        return frozenset(self._engine.processes) if self._engine is not None else frozenset()

    def read(self, put: Put) -> None:
        look = self._reads % _LOOK_EVERY == 0
        self._reads += 1
        for name, tree in (("client", self._client), ("server", self._engine)):
            if tree is None:
                continue
            if look:
                tree.look()
                tree.read_threads(name, put)
                if reason := tree.read_io(name, put):
                    self.missing[f"{name}.read_bytes"] = self.missing[f"{name}.written_bytes"] = reason
            tree.read(name, put, each=name == "server")
        if look and self._engine is not None:
            self._names.update(self._engine.names())
            self.about["engine_processes"] = self._names
        if self._partners is not None:
            if look:
                self._partners.look()
            with suppress(UnreadableError):  # it died: that is a matter of its own cell
                self._partners.read("partner", put, each=False)


def listener(port: int) -> int | None:
    """The pid that listens on a port of this machine; None if there is none, or if it may not be seen.

    Docker publishes a port through its proxy, which does no work of the engine.
    """
    try:
        listening = [
            found.pid
            for found in psutil.net_connections("tcp")
            if found.status == psutil.CONN_LISTEN and found.laddr and found.laddr.port == port and found.pid
        ]
        pids = [pid for pid in listening if psutil.Process(pid).name() != "docker-proxy"]
    except (psutil.Error, OSError):
        return None
    return min(pids, default=None)


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            pids += map(int, (task / "children").read_bytes().split())
    except OSError:  # it ended
        return pids
    return pids
