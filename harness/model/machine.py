"""Resources of the machine that a cell used, and what they cost."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float


class Range(Record, frozen=True, kw_only=True):
    """Range of a sampled gauge over the window."""

    mean: Annotated[float, doc("Over time.")]
    max: Annotated[float, doc("Highest sample.")]


class MigInstance(Record, frozen=True, kw_only=True):
    """A MIG instance: a part of a GPU with memory of its own."""

    number: Annotated[int, doc("On its GPU.")]
    uuid: Annotated[str, doc("Of the driver.")]
    memory_used_bytes: Annotated[Range | None, doc("By everybody.")]


class GpuDevice(Record, frozen=True, kw_only=True):
    """One GPU over the window; what was not sampled is null."""

    index: Annotated[int, doc("As the driver counts.")]
    name: Annotated[str | None, doc("As the driver calls it.")]
    uuid: Annotated[str | None, doc("Of the driver.")]
    memory_bytes: Annotated[int | None, doc("In all.")]
    power_limit_w: Annotated[float | None, doc("As it was set, W.")]
    memory_used_bytes: Annotated[Range | None, doc("By everybody.")]
    engine_memory_bytes: Annotated[Range | None, doc("Held by the engine's processes.")]
    other_memory_bytes: Annotated[Range | None, doc("Held by others.")]
    power_w: Annotated[Range | None, doc("Drawn, W.")]
    utilisation_pct: Annotated[Range | None, doc("Time in which a kernel ran.")]
    memory_utilisation_pct: Annotated[Range | None, doc("Time in which memory was read or written.")]
    sm_active_pct: Annotated[Range | None, doc("SMs in use.")]
    tensor_active_pct: Annotated[Range | None, doc("Tensor cores in use.")]
    dram_active_pct: Annotated[Range | None, doc("Memory bandwidth in use.")]
    sm_clock_mhz: Annotated[Range | None, doc("Of the SMs.")]
    memory_clock_mhz: Annotated[Range | None, doc("Of the memory.")]
    temperature_c: Annotated[Range | None, doc("Of the chip, degrees Celsius.")]
    pcie_sent_bytes_per_s: Annotated[Range | None, doc("To the host.")]
    pcie_received_bytes_per_s: Annotated[Range | None, doc("From the host.")]
    idle_power_w: Annotated[float | None, doc("Before the first request, W.")]
    idle_utilisation_pct: Annotated[float | None, doc("Before the first request.")]
    throttled_share: Annotated[
        dict[str, float] | None, doc("Of the samples, 0 to 1, by reason; null: never read.")
    ]
    mig: Annotated[tuple[MigInstance, ...], doc("Its MIG instances.")]


class Gpu(Record, frozen=True, kw_only=True):
    """The engine's GPUs together, and each: docs/telemetry.md."""

    chosen: Annotated[str, doc("How the engine came to its GPUs.")]
    engine_gpus: Annotated[tuple[int, ...], doc("Indices of the GPUs that the engine uses.")]
    seen_using_them: Annotated[bool, doc("Its processes were seen to hold memory on them.")]
    memory_used_bytes: Annotated[Range | None, doc("Sum.")]
    engine_memory_bytes: Annotated[Range | None, doc("Held by the engine's processes; sum.")]
    other_memory_bytes: Annotated[Range | None, doc("Held by others; sum.")]
    power_w: Annotated[Range | None, doc("Sum.")]
    utilisation_pct: Annotated[Range | None, doc("Time in which a kernel ran; mean of the GPUs.")]
    memory_utilisation_pct: Annotated[Range | None, doc("Time in which memory was read or written; mean.")]
    sm_active_pct: Annotated[Range | None, doc("SMs in use; mean of the GPUs.")]
    tensor_active_pct: Annotated[Range | None, doc("Tensor cores in use; mean of the GPUs.")]
    dram_active_pct: Annotated[Range | None, doc("Memory bandwidth in use; mean of the GPUs.")]
    idle_utilisation_pct: Annotated[float | None, doc("Highest before the first request.")]
    devices: Annotated[tuple[GpuDevice, ...], doc("Each GPU with the same gauges, and its own.")]


class BusiestProcess(Record, frozen=True, kw_only=True):
    """The engine's process that used most CPU."""

    pid: Annotated[int, doc("Process id.")]
    name: Annotated[str | None, doc("As the system calls it.")]
    cores: Annotated[float, doc("1 is one core kept busy.")]


_COUNT = Number | UnsetType | None
_GAUGE = Range | UnsetType | None
_RATE = float | UnsetType | None


class Server(Record, frozen=True, kw_only=True):
    """The engine's own counters over the cell, and its processes or container over the window."""

    prompt_tokens: Annotated[_COUNT, doc("By the engine's counter.")] = UNSET
    cached_prompt_tokens: Annotated[_COUNT, doc("By the engine's counter.")] = UNSET
    host_cached_tokens: Annotated[_COUNT, doc("Of these, from behind the KV cache: host memory, disk.")] = (
        UNSET
    )
    output_tokens: Annotated[_COUNT, doc("By the engine's counter.")] = UNSET
    image_queries: Annotated[_COUNT, doc("Images looked up in a cache of their own.")] = UNSET
    image_hits: Annotated[_COUNT, doc("Images found there.")] = UNSET
    preemptions: Annotated[_COUNT, doc("Requests that lost their place in the KV cache.")] = UNSET
    draft_tokens: Annotated[_COUNT, doc("Speculated.")] = UNSET
    accepted_tokens: Annotated[_COUNT, doc("Speculated and kept.")] = UNSET
    cpu_cores: Annotated[_RATE, doc("1 is one core kept busy.")] = UNSET
    busiest_process: Annotated[BusiestProcess | UnsetType | None, doc("Of the engine.")] = UNSET
    rss_bytes: Annotated[_GAUGE, doc("Memory of its processes.")] = UNSET
    threads: Annotated[_GAUGE, doc("Of its processes.")] = UNSET
    read_bytes_per_s: Annotated[_RATE, doc("From disk.")] = UNSET
    written_bytes_per_s: Annotated[_RATE, doc("To disk.")] = UNSET
    running: Annotated[_GAUGE, doc("Requests, by the engine's gauge.")] = UNSET
    waiting: Annotated[_GAUGE, doc("Requests queued, by the engine's gauge.")] = UNSET
    kv_use: Annotated[_GAUGE, doc("KV cache in use, 0 to 1.")] = UNSET
    cache_hit_rate: Annotated[_GAUGE, doc("By the engine's gauge, 0 to 1.")] = UNSET
    acceptance_rate: Annotated[_RATE, doc("Speculated tokens that were kept, 0 to 1.")] = UNSET
    histograms: Annotated[
        dict[str, dict[str, float | None]] | UnsetType,
        doc("The engine's own, ms: count, mean, p50, p90, p99."),
    ] = UNSET


class Host(Record, frozen=True, kw_only=True):
    """Cores kept busy by engine, client and others; memory, disk, network."""

    cpus: Annotated[Number | None, doc("Cores of the machine.")]
    busy_cores: Annotated[float, doc("All that was used.")]
    server_cores: Annotated[float | None, doc("By the engine.")]
    client_cores: Annotated[float | None, doc("By the load generator.")]
    other_cores: Annotated[float | None, doc("By everybody else, a hypervisor included.")]
    stolen_cores: Annotated[float | None, doc("Taken by a hypervisor.")]
    memory_used_bytes: Annotated[Range | None, doc("Of the machine.")]
    disk_read_bytes_per_s: Annotated[float | None, doc("Of the machine.")]
    disk_written_bytes_per_s: Annotated[float | None, doc("Of the machine.")]
    net_received_bytes_per_s: Annotated[float | None, doc("Of the machine.")]
    net_sent_bytes_per_s: Annotated[float | None, doc("Of the machine.")]


class LoadNodeUse(Record, frozen=True, kw_only=True):
    """Resources used on a machine that sent load; null: too few samples."""

    name: Annotated[str, doc("Of the host.")]
    address: Annotated[str, doc("Under which the cluster knows it.")]
    cpus: Annotated[int, doc("That the load could use.")]
    busy_cores: Annotated[float | None, doc("All that was used.")]
    client_cores: Annotated[float | None, doc("By the load generator.")]
    stolen_cores: Annotated[float | None, doc("Taken by a hypervisor.")]
    memory_used_bytes: Annotated[Range | None, doc("Of the machine.")]
    net_received_bytes_per_s: Annotated[float | None, doc("Of the machine.")]
    net_sent_bytes_per_s: Annotated[float | None, doc("Of the machine.")]


class Energy(Record, frozen=True, kw_only=True):
    """Joules and watts over the window."""

    scope: Annotated[str, doc("gpu or cpu: what the joules are of.")]
    gpu_w: Annotated[float | None, doc("Power of the engine's GPUs, W.")]
    gpu_idle_w: Annotated[float | None, doc("The same before the first request, W.")]
    cpu_w: Annotated[float | None, doc("Power of the CPU packages, W.")]
    cpu_idle_w: Annotated[float | None, doc("The same before the first request, W.")]
    window_s: Annotated[float, doc("Length of the window, s.")]
    joules: Annotated[float, doc("Idle power included.")]
    joules_per_output_token: Annotated[float | None, doc("Idle power included.")]
    joules_per_output_token_above_idle: Annotated[float | None, doc("Idle power taken off.")]
    joules_per_request: Annotated[float | None, doc("Idle power included.")]
    output_tokens_per_s_per_watt: Annotated[float | None, doc("Idle power included.")]


class Price(Record, frozen=True, kw_only=True):
    """Price of an hour, as it was given."""

    per_hour: Annotated[Number, doc("In the currency.")]
    currency: Annotated[str, doc("As given.")]
    covers: Annotated[str, doc("The machine, or which GPUs.")]
    source: Annotated[str, doc("Where the price is from.")]


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of hardware, as they were given. There is no default: a price is never made up.

    A price of the machine covers everything in it; without one, each GPU that the engine used is charged.
    """  # A dataclass: harness.spec builds those from TOML.

    currency: Annotated[str, doc("As given.")]
    source: Annotated[str, doc("Whose price list, of which day; or the flag.")]
    machine_per_hour: Annotated[float | None, doc("Of the whole machine; null: see gpu_per_hour.")] = None
    gpu_per_hour: Annotated[
        dict[str, float], doc("By the name that the driver gives the GPU; `*`: of any.")
    ] = field(default_factory=dict)


class Cost(Record, frozen=True, kw_only=True):
    """Cost from a price that was given: docs/cost.md."""

    price: Annotated[Price, doc("Of an hour.")]
    per_million_output_tokens: Annotated[float | None, doc("In the price's currency.")]
    per_million_input_tokens: Annotated[float | None, doc("In the price's currency.")]
    per_million_tokens: Annotated[float | None, doc("Of both, in the price's currency.")]
    per_million_answer_tokens: Annotated[
        float | None, doc("The whole price charged to output without its reasoning.")
    ] = None
    per_million_good_output_tokens: Annotated[float | None, doc("Of output within the SLO.")]
    output_tokens_per_day: Annotated[float | None, doc("At this rate.")]


class Limiter(Record, frozen=True, kw_only=True):
    """The resource that limited the cell, found by fixed rules."""

    code: Annotated[str, doc("The rule.")]
    sentence: Annotated[str, doc("In words, with its numbers.")]
    numbers: Annotated[dict[str, Number], doc("All that the rules look at and that is known.")]


class SourceHealth(Record, frozen=True, kw_only=True):
    """Reads and failures of one source of telemetry."""

    reads: Annotated[int, doc("That worked.")]
    unavailable: Annotated[str, doc("Why there is nothing from it at all.")]
    last_failure: Annotated[str, doc("What it said.")]
    failing_since_s: Annotated[float | None, doc("From t0; null: its last read worked.")]
    # In keys of the source's own, as `cell.json` has them.
    about: Annotated[dict[str, Any], doc("broken, and devices that were lost.")]


class TelemetryHealth(Record, frozen=True, kw_only=True):
    """Sources that were sampled, the cost of sampling, and what could not be sampled."""

    requested: Annotated[bool, doc("Whether anything was to be sampled.")]
    problem: Annotated[str | None, doc("Why nothing was sampled to the end.")]
    sources: Annotated[dict[str, SourceHealth], doc("By name.")]
    sampler: Annotated[dict[str, Number] | UnsetType, doc("Its own cpu_s, wall_s and peak_rss_bytes.")] = (
        UNSET
    )
    longest_stall_ms: Annotated[
        float | UnsetType, doc("Longest time for which the sampler did not run, ms; 0: below 100 ms.")
    ] = UNSET
