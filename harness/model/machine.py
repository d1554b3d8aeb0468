"""Resources of the machine that a cell used, and what they cost."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float


class Range(Record, frozen=True, kw_only=True):
    """Range of a sampled gauge over the window."""

    mean: Annotated[float, doc("Mean over the time of the window.")]
    max: Annotated[
        float,
        doc(
            "Highest value in the window, interpolated at its ends; of several GPUs, the sum or mean of "
            "their own."
        ),
    ]


class MigInstance(Record, frozen=True, kw_only=True):
    """A MIG instance: a part of a GPU with memory of its own."""

    number: Annotated[int, doc("Number of the instance on its GPU.")]
    uuid: Annotated[str, doc("UUID of the instance, by the driver.")]
    memory_used_bytes: Annotated[Range | None, doc("Memory of the instance in use by all processes.")]


class GpuDevice(Record, frozen=True, kw_only=True):
    """One GPU over the window; what was not sampled is null."""

    index: Annotated[int, doc("Number of the GPU, as the driver counts.")]
    name: Annotated[str | None, doc("Name of the GPU, by the driver.")]
    uuid: Annotated[str | None, doc("UUID of the GPU, by the driver.")]
    memory_bytes: Annotated[int | None, doc("Total memory of the GPU.")]
    power_limit_w: Annotated[float | None, doc("Power limit that was set.")]
    memory_used_bytes: Annotated[Range | None, doc("Memory in use by all processes.")]
    engine_memory_bytes: Annotated[Range | None, doc("Memory held by the engine's processes.")]
    other_memory_bytes: Annotated[Range | None, doc("Memory held by other processes.")]
    power_w: Annotated[Range | None, doc("Power draw of the GPU.")]
    utilisation_pct: Annotated[Range | None, doc("Share of the time in which a kernel ran, %.")]
    memory_utilisation_pct: Annotated[
        Range | None, doc("Share of the time in which memory was read or written, %.")
    ]
    sm_active_pct: Annotated[Range | None, doc("SMs in use, % of all.")]
    tensor_active_pct: Annotated[Range | None, doc("Tensor cores in use, % of the peak.")]
    dram_active_pct: Annotated[Range | None, doc("Memory bandwidth in use, % of the peak.")]
    sm_clock_mhz: Annotated[Range | None, doc("Clock of the SMs.")]
    memory_clock_mhz: Annotated[Range | None, doc("Clock of the memory.")]
    temperature_c: Annotated[Range | None, doc("Temperature of the chip, degrees Celsius.")]
    pcie_sent_bytes_per_s: Annotated[Range | None, doc("PCIe traffic to the host.")]
    pcie_received_bytes_per_s: Annotated[Range | None, doc("PCIe traffic from the host.")]
    idle_power_w: Annotated[float | None, doc("Power draw before the first request.")]
    idle_utilisation_pct: Annotated[
        float | None, doc("Share of the time before the first request in which a kernel ran, %.")
    ]
    throttled_share: Annotated[
        dict[str, float] | None,
        doc("Share of the samples with throttled clocks, 0 to 1, by reason; null: never read."),
    ]
    mig: Annotated[tuple[MigInstance, ...], doc("MIG instances of the GPU.")]


class Gpu(Record, frozen=True, kw_only=True):
    """The engine's GPUs together, and each: docs/telemetry.md."""

    chosen: Annotated[str, doc("Number of GPUs that the engine may use, and how they were chosen.")]
    engine_gpus: Annotated[tuple[int, ...], doc("Numbers of the GPUs that the engine uses.")]
    seen_using_them: Annotated[
        bool, doc("Whether each GPU showed how much memory the engine's processes hold.")
    ]
    memory_used_bytes: Annotated[
        Range | None, doc("Memory in use by all processes; sum over the engine's GPUs.")
    ]
    engine_memory_bytes: Annotated[
        Range | None, doc("Memory held by the engine's processes; sum over its GPUs.")
    ]
    other_memory_bytes: Annotated[
        Range | None, doc("Memory held by other processes; sum over the engine's GPUs.")
    ]
    power_w: Annotated[Range | None, doc("Power draw; sum over the engine's GPUs.")]
    utilisation_pct: Annotated[
        Range | None, doc("Share of the time in which a kernel ran, %; mean of the engine's GPUs.")
    ]
    memory_utilisation_pct: Annotated[
        Range | None,
        doc("Share of the time in which memory was read or written, %; mean of the engine's GPUs."),
    ]
    sm_active_pct: Annotated[Range | None, doc("SMs in use, % of all; mean of the engine's GPUs.")]
    tensor_active_pct: Annotated[
        Range | None, doc("Tensor cores in use, % of the peak; mean of the engine's GPUs.")
    ]
    dram_active_pct: Annotated[
        Range | None, doc("Memory bandwidth in use, % of the peak; mean of the engine's GPUs.")
    ]
    idle_utilisation_pct: Annotated[
        float | None, doc("Highest share of the time before the first request in which a kernel ran, %.")
    ]
    devices: Annotated[tuple[GpuDevice, ...], doc("Figures of each GPU that the engine may use.")]

    @property
    def power_limits(self) -> str | None:
        """The limits of the engine's GPUs; None where there is no GPU, or one of them is not known."""
        limits = [device.power_limit_w for device in self.devices if device.index in self.engine_gpus]
        known = [f"{limit:g} W" for limit in limits if limit is not None]
        return ", ".join(dict.fromkeys(known)) if known and len(known) == len(limits) else None


class BusiestProcess(Record, frozen=True, kw_only=True):
    """The engine's process that used most CPU."""

    pid: Annotated[int, doc("Process id.")]
    name: Annotated[str | None, doc("Name of the process in the system; null: not known.")]
    cores: Annotated[float, doc("Cores kept busy by the process: 1 is one core.")]


_COUNT = Number | UnsetType | None
_GAUGE = Range | UnsetType | None
_RATE = float | UnsetType | None


class Server(Record, frozen=True, kw_only=True):
    """Counters of the engine over the cell, its gauges and processes over the window; null: not known."""

    prompt_tokens: Annotated[_COUNT, doc("Prompt tokens by the engine's counter, cached ones included.")] = (
        UNSET
    )
    cached_prompt_tokens: Annotated[_COUNT, doc("Cached prompt tokens by the engine's counter.")] = UNSET
    host_cached_tokens: Annotated[
        _COUNT, doc("Cached prompt tokens from behind the KV cache, such as host memory or disk.")
    ] = UNSET
    output_tokens: Annotated[_COUNT, doc("Output tokens by the engine's counter.")] = UNSET
    image_queries: Annotated[_COUNT, doc("Images looked up in the engine's cache of images.")] = UNSET
    image_hits: Annotated[_COUNT, doc("Images found in the engine's cache of images.")] = UNSET
    preemptions: Annotated[_COUNT, doc("Preempted requests: they lost their place in the KV cache.")] = UNSET
    draft_tokens: Annotated[
        _COUNT, doc("Tokens drafted by speculative decoding, by the engine's counter.")
    ] = UNSET
    accepted_tokens: Annotated[_COUNT, doc("Drafted tokens that were accepted, by the engine's counter.")] = (
        UNSET
    )
    cpu_cores: Annotated[_RATE, doc("Cores kept busy by the engine: 1 is one core.")] = UNSET
    busiest_process: Annotated[
        BusiestProcess | UnsetType | None, doc("Process of the engine that used most CPU.")
    ] = UNSET
    rss_bytes: Annotated[_GAUGE, doc("Resident memory of the engine's processes.")] = UNSET
    threads: Annotated[_GAUGE, doc("Threads of the engine's processes.")] = UNSET
    read_bytes_per_s: Annotated[_RATE, doc("Disk reads of the engine's processes.")] = UNSET
    written_bytes_per_s: Annotated[_RATE, doc("Disk writes of the engine's processes.")] = UNSET
    running: Annotated[_GAUGE, doc("Running requests, by the engine's gauge.")] = UNSET
    waiting: Annotated[_GAUGE, doc("Queued requests, by the engine's gauge.")] = UNSET
    kv_use: Annotated[_GAUGE, doc("Share of the KV cache in use, 0 to 1, by the engine's gauge.")] = UNSET
    cache_hit_rate: Annotated[_GAUGE, doc("Hit rate of the prefix cache, 0 to 1, by the engine's gauge.")] = (
        UNSET
    )
    acceptance_rate: Annotated[
        _RATE, doc("Share of the drafted tokens that were accepted, 0 to 1; null: no drafts, or not counted.")
    ] = UNSET
    histograms: Annotated[
        dict[str, dict[str, float | None]] | UnsetType,
        doc(
            "Latencies by the engine's own histograms, ms: count, mean, p50, p90, p99; null: in the first or "
            "the last bucket."
        ),
    ] = UNSET


class TtftParts(Record, frozen=True, kw_only=True):
    """Mean TTFT of all answers, warm-up included, and its parts by the engine's own histograms."""

    client_ms: Annotated[float, doc("Mean time from the send to the first text, as bench saw it.")]
    queue_ms: Annotated[float | None, doc("Mean time in the engine's queue; null: not counted.")]
    engine_ms: Annotated[
        float, doc("Mean of the engine's own TTFT without its queue: scheduling, prompt, first token.")
    ]
    rest_ms: Annotated[float, doc("Rest of client_ms: HTTP, chat template, tokenizer, network and client.")]


class Host(Record, frozen=True, kw_only=True):
    """Cores kept busy by engine, client and others; memory, disk, network."""

    cpus: Annotated[Number | None, doc("Hardware threads of the machine.")]
    busy_cores: Annotated[float, doc("Cores kept busy by everybody: 1 is one core.")]
    server_cores: Annotated[float | None, doc("Cores kept busy by the engine.")]
    client_cores: Annotated[float | None, doc("Cores kept busy by the load generator.")]
    other_cores: Annotated[float | None, doc("Cores kept busy by everybody else, a hypervisor included.")]
    stolen_cores: Annotated[float | None, doc("Cores taken by a hypervisor.")]
    memory_used_bytes: Annotated[Range | None, doc("Memory of the machine in use.")]
    disk_read_bytes_per_s: Annotated[float | None, doc("Disk reads of the machine.")]
    disk_written_bytes_per_s: Annotated[float | None, doc("Disk writes of the machine.")]
    net_received_bytes_per_s: Annotated[float | None, doc("Network traffic that the machine received.")]
    net_sent_bytes_per_s: Annotated[float | None, doc("Network traffic that the machine sent.")]


class LoadNodeUse(Record, frozen=True, kw_only=True):
    """Resources used on a machine that sent load; null: too few samples."""

    name: Annotated[str, doc("Name of the host.")]
    address: Annotated[str, doc("Address by which the cluster knows the host.")]
    cpus: Annotated[int, doc("CPUs that the load could use.")]
    busy_cores: Annotated[float | None, doc("Cores kept busy by everybody: 1 is one core.")]
    client_cores: Annotated[float | None, doc("Cores kept busy by the load generator.")]
    stolen_cores: Annotated[float | None, doc("Cores taken by a hypervisor.")]
    memory_used_bytes: Annotated[Range | None, doc("Memory of the machine in use.")]
    net_received_bytes_per_s: Annotated[float | None, doc("Network traffic that the machine received.")]
    net_sent_bytes_per_s: Annotated[float | None, doc("Network traffic that the machine sent.")]


class Energy(Record, frozen=True, kw_only=True):
    """Joules and watts over the window."""

    scope: Annotated[str, doc("Devices that the joules are of: gpu or cpu.")]
    gpu_w: Annotated[float | None, doc("Mean power of the engine's GPUs; null: not measured.")]
    gpu_idle_w: Annotated[float | None, doc("Mean power of the engine's GPUs before the first request.")]
    cpu_w: Annotated[float | None, doc("Mean power of the CPU packages; null: not measured.")]
    cpu_idle_w: Annotated[float | None, doc("Mean power of the CPU packages before the first request.")]
    window_s: Annotated[float, doc("Length of the window.")]
    joules: Annotated[float, doc("Energy over the window, idle power included.")]
    joules_per_output_token: Annotated[float | None, doc("Energy per output token, idle power included.")]
    joules_per_output_token_above_idle: Annotated[
        float | None, doc("Energy per output token, idle power taken off.")
    ]
    joules_per_request: Annotated[float | None, doc("Energy per answer, idle power included.")]
    output_tokens_per_s_per_watt: Annotated[
        float | None, doc("Output tokens per second and watt, idle power included.")
    ]


class Price(Record, frozen=True, kw_only=True):
    """Price of an hour, as it was given."""

    per_hour: Annotated[Number, doc("Price of an hour, in the currency.")]
    currency: Annotated[str, doc("Currency, as given.")]
    covers: Annotated[str, doc("Hardware that the price is of: the machine, or which GPUs.")]
    source: Annotated[str, doc("Source of the price: a price list of a day, or a flag.")]


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of hardware, as they were given. There is no default: a price is never made up.

    A price of the machine covers everything in it; without one, each GPU that the engine used is charged.
    """  # A dataclass: harness.spec builds those from TOML.

    currency: Annotated[str, doc("Currency, as given.")]
    source: Annotated[str, doc("Source of the prices: whose list, of which day; or the flag.")]
    machine_per_hour: Annotated[
        float | None, doc("Price of an hour of the whole machine; null: see gpu_per_hour.")
    ] = None
    gpu_per_hour: Annotated[
        dict[str, float], doc("Price of an hour of a GPU by the driver's name for it; `*`: of any other.")
    ] = field(default_factory=dict)
    backend_per_hour: Annotated[
        dict[str, float], doc("Price of an hour of the machine by the backend on it; empty: one for all.")
    ] = field(default_factory=dict)


class Cost(Record, frozen=True, kw_only=True):
    """Cost from a price that was given: docs/cost.md."""

    price: Annotated[Price, doc("Price of an hour that all figures charge.")]
    per_million_output_tokens: Annotated[
        float | None, doc("Cost of a million output tokens, in the price's currency.")
    ]
    per_million_input_tokens: Annotated[
        float | None, doc("Cost of a million input tokens, in the price's currency.")
    ]
    per_million_tokens: Annotated[
        float | None, doc("Cost of a million tokens, input or output, in the price's currency.")
    ]
    per_million_answer_tokens: Annotated[
        float | None, doc("Cost of a million output tokens without reasoning; null: none is counted.")
    ] = None
    per_million_good_output_tokens: Annotated[
        float | None, doc("Cost of a million output tokens of answers within the SLO.")
    ]
    output_tokens_per_day: Annotated[float | None, doc("Output tokens of a day at the measured rate.")]


class Limiter(Record, frozen=True, kw_only=True):
    """The resource that limited the cell, found by fixed rules."""

    code: Annotated[str, doc("Rule that found the resource.")]
    sentence: Annotated[str, doc("Resource in words, with the numbers.")]
    numbers: Annotated[dict[str, Number], doc("Numbers that the rules look at, as far as they are known.")]


class SourceHealth(Record, frozen=True, kw_only=True):
    """Reads and failures of one source of telemetry."""

    reads: Annotated[int, doc("Reads that worked.")]
    failures: Annotated[
        int | UnsetType, doc("Reads that failed, if more than two and more than a tenth did; missing: fewer.")
    ] = UNSET
    unavailable: Annotated[str, doc("Reason that the source was not available; empty: it was.")]
    last_failure: Annotated[str, doc("Error of the last failed read; empty: none failed.")]
    failing_since_s: Annotated[
        float | None,
        doc("First of the failing reads, s from the start of the cell; null: the last one worked."),
    ]
    # In keys of the source's own, as `cell.json` has them.
    about: Annotated[
        dict[str, Any], doc("Facts in keys of the source's own: broken, named, read_hz, and devices lost.")
    ]


class TelemetryHealth(Record, frozen=True, kw_only=True):
    """Sources that were sampled, the cost of sampling, and what could not be sampled."""

    requested: Annotated[bool, doc("Whether anything was to be sampled.")]
    problem: Annotated[str | None, doc("Reason that nothing was sampled to the end; null: none.")]
    sources: Annotated[dict[str, SourceHealth], doc("Health of each source by its name.")]
    sampler: Annotated[
        dict[str, Number] | UnsetType, doc("Cost of the sampler itself: cpu_s, wall_s, peak_rss_bytes.")
    ] = UNSET
    longest_stall_ms: Annotated[
        float | UnsetType, doc("Longest time for which the sampler did not run; 0: below 100 ms.")
    ] = UNSET
