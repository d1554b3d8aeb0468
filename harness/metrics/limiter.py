"""What kept a cell from being faster: fixed rules over measured numbers; the first that holds is named.

It is what was full, not what would help most. A GPU's counters of its SMs and memory come before NVML's
utilisation, which only says that some kernel was running.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.model import ClientStats, Gpu, Host, Limiter, LoadPoint, Server, State, known
from harness.model.json_path import number_at
from harness.model.numbers import as_given, counted, percent_apart

Numbers = dict[str, float | None]

CLIENT_BUSY = 0.9  # of a core, by the busiest load process, or of what it gets, by all of them
KV_FULL = 0.95
DRAM_FULL_PCT, SM_FULL_PCT = 75.0, 80.0  # of what the chip could do: real kernels reach little more
MEMORY_BUSY_PCT = 70.0  # NVML: share of time in which memory was read or written
GPU_BUSY_PCT = 90.0  # NVML: share of time in which a kernel was running
CPU_FULL = 0.85  # of the cores that the engine may use
MACHINE_FULL = 0.95  # of all cores, whoever used them
# A process that waits for its GPU in a loop uses a core too: what the GPU is idle for is the CPU's doing.
PROCESS_FULL = 0.9  # of a core, by one process of the engine
GPU_IDLE_PCT = 25.0  # at least, of the time
QUEUED = 0.5  # requests, on average


@dataclass(frozen=True, slots=True)
class Watched:
    """The input of the rules. `threads`: how many the engine was started with, if known. `quotas`: CPUs'
    worth of time that the cgroups of "client" and "server" get, and no more than the CPUs that their threads
    may run on, where there is a limit.
    """

    load: LoadPoint
    client: ClientStats
    gpu: Gpu | None
    server: Server | None
    host: Host | None
    threads: float | None
    state: State | None = None
    quotas: Mapping[str, float] = field(default_factory=dict)
    gpus_unread: bool = False  # there are GPUs, and none could be read


def limiter(cell: Watched) -> tuple[Limiter | None, str]:
    """The limiter, or why it is not known."""
    seen = numbers(cell)
    for rule in _RULES:
        for code, sentence in rule(seen, cell):
            known = {name: value for name, value in seen.items() if value is not None}
            return Limiter(code=code, sentence=sentence, numbers=known), ""
    if _unread(seen, cell):
        return None, "how busy the engine's GPUs were could not be read"
    if _engine_seen(seen):
        return None, "the server did not keep up with the load, and nothing that was sampled was full"
    return None, "neither the engine's GPUs nor its processes could be watched"


def numbers(cell: Watched) -> Numbers:
    """The numbers that the rules see, and nothing else."""
    gpu, server, host = cell.gpu, cell.server, cell.host
    cpus = host.cpus if host else None
    client_quota, engine_quota = map(cell.quotas.get, ("client", "server"))
    return {
        "client_busy": cell.client.busy_share,
        "client_cores": host.client_cores if host and client_quota else None,
        "client_cpu_quota": client_quota,
        "gpu_pct": number_at(gpu, "utilisation_pct.mean"),
        "gpu_memory_pct": number_at(gpu, "memory_utilisation_pct.mean"),
        "sm_active_pct": number_at(gpu, "sm_active_pct.mean"),
        "dram_active_pct": number_at(gpu, "dram_active_pct.mean"),
        "kv_use": number_at(server, "kv_use.max"),
        "running": number_at(server, "running.mean"),
        "waiting": number_at(server, "waiting.mean"),
        "preemptions": number_at(server, "preemptions"),
        "cpus": cpus,
        "engine_cores": number_at(server, "cpu_cores"),
        "engine_cpu_quota": engine_quota,
        "engine_cores_limit": min(filter(None, (cpus, engine_quota, cell.threads)), default=None),
        "busiest_process_cores": number_at(server, "busiest_process.cores"),
        "busy_cores": host.busy_cores if host else None,
        "other_cores": host.other_cores if host else None,
    }


Rule = Callable[[Numbers, Watched], Iterator[tuple[str, str]]]


def _client(seen: Numbers, _cell: Watched) -> Iterator[tuple[str, str]]:
    busy = seen["client_busy"]
    if busy is not None and busy >= CLIENT_BUSY:
        yield "client", f"the load generator: one of its processes used {busy:.0%} of a core"
    used, limit = seen["client_cores"], seen["client_cpu_quota"]
    if used is not None and limit is not None and used >= CLIENT_BUSY * limit:
        yield "client", f"the load generator: it used {used:.2f} of {_cores(limit)} that it gets"


def _kv_cache(seen: Numbers, _cell: Watched) -> Iterator[tuple[str, str]]:
    full, waiting, preempted = seen["kv_use"], seen["waiting"] or 0.0, seen["preemptions"] or 0.0
    if full is not None and full >= KV_FULL and (waiting >= QUEUED or preempted):
        lost = f" and {preempted:.0f} were preempted" if preempted else ""
        used = percent_apart(full)
        yield "kv-cache", f"the KV cache: up to {used}% full while {waiting:.1f} requests waited{lost}"


def _gpu_inside(seen: Numbers, _cell: Watched) -> Iterator[tuple[str, str]]:
    dram, compute, rough = seen["dram_active_pct"], seen["sm_active_pct"], seen["gpu_memory_pct"]
    if dram is not None and dram >= DRAM_FULL_PCT:
        yield "gpu-memory-bandwidth", f"GPU memory bandwidth: {dram:.0f}% of the peak in use"
    if compute is not None and compute >= SM_FULL_PCT:
        yield "gpu-compute", f"GPU compute: {compute:.0f}% of the SMs busy"
    if dram is None and rough is not None and rough >= MEMORY_BUSY_PCT:
        yield (
            "gpu-memory-bandwidth",
            f"GPU memory bandwidth, as far as NVML reports: memory in use {rough:.0f}% of the time",
        )


def _unread(seen: Numbers, cell: Watched) -> bool:
    """Whether the engine is on GPUs that do not show how busy they are, such as MIG instances."""
    on_gpus = cell.gpus_unread or (cell.gpu is not None and bool(cell.gpu.engine_gpus))
    return seen["gpu_pct"] is None and on_gpus


def _engine_seen(seen: Numbers) -> bool:
    return seen["gpu_pct"] is not None or seen["engine_cores"] is not None


def _gpu_idles(seen: Numbers) -> bool:
    return seen["gpu_pct"] is not None and seen["gpu_pct"] <= 100.0 - GPU_IDLE_PCT


def _cpu(seen: Numbers, cell: Watched) -> Iterator[tuple[str, str]]:
    used, limit, idle = seen["engine_cores"], seen["engine_cores_limit"], ""
    if _gpu_idles(seen):  # the threads of `threads` are not those that feed a GPU
        limit, idle = _given_cores(seen), f", the GPU was busy {seen['gpu_pct']:.0f}%"
    elif seen["gpu_pct"] is not None or _unread(seen, cell):
        return
    if used is not None and limit is not None and used >= CPU_FULL * limit:
        yield "cpu", f"the CPU: the engine used {_engine_cores(used, seen, cell)}{idle}"


def _cpu_contended(seen: Numbers, cell: Watched) -> Iterator[tuple[str, str]]:
    """A GPU that is busy is not held up by the CPU."""
    busy, others, cpus = seen["busy_cores"], seen["other_cores"] or 0.0, seen["cpus"]
    if _unread(seen, cell) or (seen["gpu_pct"] or 0.0) >= GPU_BUSY_PCT or busy is None or cpus is None:
        return
    if busy >= MACHINE_FULL * cpus and others >= 0.1 * cpus:
        yield (
            "cpu-contended",
            f"the CPU, shared: {busy:.1f} of {cpus:g} cores busy, {others:.1f} of them with other work",
        )


def _engine_process(seen: Numbers, cell: Watched) -> Iterator[tuple[str, str]]:
    alone = seen["busiest_process_cores"]
    process = known(cell.server.busiest_process) if cell.server else None
    if _gpu_idles(seen) and process and alone is not None and alone >= PROCESS_FULL:
        name, gpu = process.name or f"process {process.pid}", f"the GPU was busy {seen['gpu_pct']:.0f}%"
        yield "engine-process", f"the engine's own CPU work: {name} used {alone:.2f} of a core, {gpu}"


def _given_cores(seen: Numbers) -> float | None:
    """Cores that the engine gets, whatever its threads."""
    return min(filter(None, (seen["cpus"], seen["engine_cpu_quota"])), default=None)


def _cores(count: float) -> str:
    return f"{count:g} core{'s' * (count != 1)}"


def _engine_cores(used: float, seen: Numbers, cell: Watched) -> str:
    """`1.9 of 2 cores with 1 thread`: an engine with fewer threads than cores is full before these are."""
    cpus = _given_cores(seen)
    cores = f"{used:.1f} cores" if cpus is None else f"{used:.1f} of {_cores(cpus)}"
    if cell.threads is None or (cpus is not None and cell.threads >= cpus):
        return cores
    return f"{cores} with {counted(int(cell.threads), 'thread')}"


def _queue(seen: Numbers, cell: Watched) -> Iterator[tuple[str, str]]:
    waiting, running = seen["waiting"], seen["running"]
    if waiting is not None and waiting >= QUEUED:
        ran = "" if running is None else f" while {running:.1f} ran"
        yield "queue", f"the engine's queue: {waiting:.1f} requests waited{ran}{_busy(seen, cell)}"


def _gpu(seen: Numbers, _cell: Watched) -> Iterator[tuple[str, str]]:
    gpu_pct = seen["gpu_pct"]
    if gpu_pct is not None and gpu_pct >= GPU_BUSY_PCT:
        yield (
            "gpu",
            f"the GPU: a kernel was running {gpu_pct:.0f}% of the time, what limits it inside is not known",
        )


def _load(seen: Numbers, cell: Watched) -> Iterator[tuple[str, str]]:
    """Leaves out a server that did not keep up: more load would not have given more."""
    if cell.state == "unstable" or _unread(seen, cell) or not _engine_seen(seen):
        return
    value = as_given(cell.load.value)
    offered = {
        "concurrency": f" with {value} in flight",
        "trace": f" at {value}× the trace's pace",
        "working-set": "",
    }
    words = offered.get(cell.load.kind, f" with {value} requests/s")
    yield "load", f"the load:{words} nothing was saturated{_busy(seen, cell)}"


def _busy(seen: Numbers, cell: Watched) -> str:
    parts = []
    if seen["gpu_pct"] is not None:
        parts.append(f"GPU busy {seen['gpu_pct']:.0f}%")
    if seen["engine_cores"] is not None:
        parts.append(f"engine on {_engine_cores(seen['engine_cores'], seen, cell)}")
    if seen["kv_use"] is not None:
        parts.append(f"KV cache up to {percent_apart(seen['kv_use'])}%")
    return f" ({', '.join(parts)})" if parts else ""


_RULES: tuple[Rule, ...] = (
    _client,
    _kv_cache,
    _gpu_inside,
    _cpu,
    _cpu_contended,
    _engine_process,
    _queue,
    _gpu,
    _load,
)
