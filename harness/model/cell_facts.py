"""cell.json: what is known of one measured cell besides its records. Nothing here is derived from them."""

from typing import Annotated, Any, Literal

import msgspec

from harness.model.choices import Balance
from harness.model.client import ClientStats, Stall
from harness.model.figures import ProbeSize
from harness.model.identity import Identity
from harness.model.imported import Imported
from harness.model.load import Load
from harness.model.machine import Prices
from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float
Value = bool | int | float | str | None


class CellWorkload(Record, frozen=True, kw_only=True):
    """Facts about the requests that figures and verdicts need when the workload file is not there."""

    sha256: Annotated[str, doc("Of the requests before the dialect.")]
    exact_lengths: Annotated[bool | None, doc("Prompts were counted by the engine's own tokenizer.")]
    in_stretches: Annotated[bool, doc("Kinds of request come one after another.")] = False
    output_tokens: Annotated[int | None, doc("Asked for; null where requests differ.")]
    exact_output: Annotated[bool, doc("The length is forced.")]
    content_tokens_mean: Annotated[float, doc("Tokens per prompt, without the chat template's.")]
    ideal_hit_rate: Annotated[float, doc("What an unlimited cache could reuse from a cold start, 0 to 1.")]
    shared_share: Annotated[
        float | None, doc("What it could reuse where it holds the shared prefixes; null: not kept.")
    ] = None
    adapters: Annotated[int, doc("LoRA adapters that requests may name; 0: none does.")] = 0
    cold_cache: Annotated[bool, doc("The scenario asks for an empty cache.")]
    content: Annotated[
        str | None, doc("What the texts are: random, prose, code, json or a file; null: not kept.")
    ] = None
    images: Annotated[str | None, doc("Images of the requests, in words; null: none.")] = None
    file: Annotated[str | None, doc("What was asked, below the run folder; null: not kept.")] = None


class CellRequest(Record, frozen=True, kw_only=True):
    """Settings that all requests of a cell share; null where they were not kept."""

    api: Annotated[
        str,
        doc("That it spoke: chat, completions, responses, messages, embeddings, rerank or transcriptions."),
    ] = "chat"
    temperature: Annotated[float | None, doc("0: greedy.")] = None
    top_p: Annotated[float | None, doc("0 to 1.")] = None
    seed: Annotated[int | None, doc("Null where nothing is drawn.")] = None
    thinking: Annotated[str | None, doc("on or off.")] = None
    exact_output: Annotated[bool | None, doc("Whether an exact length was asked for.")] = None
    # A dialect may send any JSON.
    fields: Annotated[dict[str, Any] | None, doc("Of every request, in the engine's words.")] = None
    shapes: Annotated[tuple[str, ...], doc("Constraints of the output that occur.")] = ()
    tools: Annotated[bool, doc("Whether tools were offered.")] = False
    unsupported: Annotated[dict[str, str], doc("What the engine has no field for, and why.")] = msgspec.field(
        default_factory=dict
    )


class Minimum(Record, frozen=True, kw_only=True):
    """The least time and number of answers that the scenario declares enough for a cell."""

    seconds: Annotated[Number, doc("First measured send to the end of the last measured request.")]
    answers: Annotated[int, doc("Measured ones.")]
    coverage: Annotated[float, doc("Share of the duration that answers must reach; 0: of none is asked.")] = 0
    duration_s: Annotated[Number | None, doc("For which requests were to be sent, s.")] = None


class CachePreparation(Record, frozen=True, kw_only=True):
    """How the prefix cache was brought into its state; null where that was not kept."""

    requested: Annotated[str | None, doc("cold, warm, primed or any.")] = None
    method: Annotated[str | None, doc("How it was emptied: none, off, reset, restart or salt.")] = None
    reset: Annotated[bool | None, doc("Whether the engine emptied it when asked.")] = None
    description: Annotated[str | None, doc("The same for people.")] = None
    salted: Annotated[bool, doc("Prompts were kept apart from earlier ones by a salt.")] = False
    primed: Annotated[int, doc("Requests that filled it again before the window.")] = 0


class HistogramIncrease(Record, frozen=True, kw_only=True):
    """Increase of one of the engine's own histograms over the cell, in seconds."""

    buckets: Annotated[
        tuple[tuple[float | None, float | None], ...],
        doc("Upper bound, and how many up to it; the last bound is null: none."),
    ]
    sum: Annotated[float, doc("Of all observations.")]
    count: Annotated[float, doc("Observations.")]


class RoleFacts(Record, frozen=True, kw_only=True):
    """Counters and histograms of the engines of one role, over the cell."""

    role: Annotated[str, doc("prefill or decode.")]
    places: Annotated[tuple[int, ...], doc("Of them in metrics_urls: N of the series engine.N.")]
    urls: Annotated[tuple[str, ...], doc("Where their metrics were read.")]
    counters: Annotated[dict[str, float] | None, doc("After less before; null: one did not answer.")]
    restarts: Annotated[int, doc("Counters that fell: an engine restarted.")] = 0
    histograms: Annotated[dict[str, HistogramIncrease], doc("Their own, over the cell.")]


class Workers(Record, frozen=True):
    """Number of processes that send a cell's requests, and what decided it."""

    count: Annotated[int | None, doc("Load processes; null: by the harness's own constants.")]
    source: Annotated[Literal["given", "doctor", "constants"], doc("--workers, `bench doctor`, or neither.")]
    per_worker: Annotated[
        int | None, doc("Streams, or arrivals per second, that one carries here, as `bench doctor` found.")
    ] = None


class LoadNode(Record, frozen=True, kw_only=True):
    """A machine of a cluster that sent load, and how its clock differs from that of bench's machine."""

    name: Annotated[str, doc("Of the host.")]
    address: Annotated[str, doc("Under which the cluster knows it.")]
    kernel: Annotated[str, doc("Release.")]
    cpus: Annotated[int, doc("That the load could use.")]
    workers: Annotated[tuple[int, ...], doc("Its load processes, as the requests name them.")]
    lost: Annotated[str | None, doc("Why it was lost in this cell; null: it was not.")]
    clock_offset_ms: Annotated[float | None, doc("What its monotonic clock showed more; null: not known.")]
    clock_uncertainty_ms: Annotated[float | None, doc("Of that.")]
    drift_ppm: Annotated[float | None, doc("By which its clock ran faster.")]
    rtt_ms: Annotated[float | None, doc("Fastest ping to it and back.")]
    pings: Annotated[int, doc("That came back.")]
    path_rtt_ms: Annotated[float | None, doc("Fastest connection to the server; null: it made none.")]
    start_skew_ms: Annotated[float | None, doc("By which it started late; null: it did not start.")]
    longest_stall_ms: Annotated[
        float | None, doc("For which a load process of it stood still; null: none came to its end.")
    ]
    clock_step_ms: Annotated[
        float | UnsetType | None, doc("By which its real-time clock was set; null: its stamps not used.")
    ] = UNSET

    @property
    def place(self) -> str:
        return f"{self.name} ({self.address})"


class SampledSource(Record, frozen=True, kw_only=True):
    """One source of telemetry: its reads and failures, and what it says of itself."""

    period_s: Annotated[float, doc("Time between two reads, s.")]
    reads: Annotated[int, doc("That worked.")]
    failures: Annotated[int, doc("That did not.")]
    last_failure: Annotated[str, doc("What it said.")]
    longest_read_ms: Annotated[float, doc("Time of the slowest read, ms.")]
    unavailable: Annotated[str, doc("Why there is nothing from it at all.")]
    missing: Annotated[dict[str, str], doc("By series: why it could not be read.")]
    # Each source says other things of itself: GPUs, processes, an address.
    about: Annotated[dict[str, Any], doc("What was found there, in keys of the source's own.")]
    failing_since_s: Annotated[float | None, doc("From t0; null: its last read worked.")]


class Sampled(Record, frozen=True, kw_only=True):
    """Telemetry of a cell: its sources, the cost of sampling, and what could not be sampled."""

    requested: Annotated[bool, doc("Whether anything was to be sampled.")]
    problem: Annotated[str | None, doc("Why nothing was sampled to the end.")]
    sources: Annotated[dict[str, SampledSource], doc("By name.")]
    sampler: Annotated[
        dict[str, Number] | UnsetType,
        doc("Its own cpu_s, wall_s and peak_rss_bytes; missing where it was killed."),
    ] = UNSET
    stalls: Annotated[
        tuple[Stall, ...] | UnsetType,
        doc("Times of 100 ms and more for which the sampler did not run; missing where it was killed."),
    ] = UNSET


class CellFacts(Record, frozen=True, kw_only=True):
    """Everything known of a cell besides its records. Nothing here is derived from them."""

    cell: Annotated[str, doc("Its folder.")]
    identity: Annotated[Identity, doc("Taken into summary.json.")]
    load: Annotated[Load, doc("The load point, and how its requests arrive.")]
    workload: Annotated[CellWorkload, doc("What was asked.")]
    request: Annotated[CellRequest, doc("What every request asked for.")] = msgspec.field(
        default_factory=CellRequest
    )
    prefix_cache: Annotated[bool | None, doc("On or off, as declared; null: not known.")] = None
    habits: Annotated[dict[str, Value], doc("Of the dialect, as declared.")] = msgspec.field(
        default_factory=dict
    )
    engine_values: Annotated[
        dict[str, Value] | None, doc("[engine.values] as started; null: bench did not start it.")
    ] = None
    start: Annotated[
        dict[str, float | None] | None, doc("Seconds until provided, ready, and the first answer.")
    ] = None
    planned: Annotated[int, doc("Requests to be measured; warm-up apart.")]
    slo: Annotated[
        dict[str, dict[str, Number]] | None, doc("Limits in ms by latency and share of requests.")
    ] = None
    probe: Annotated[
        ProbeSize | None, doc("Of --find-capacity: the least of this cell; null: not of a search.")
    ] = None
    minimum: Annotated[
        Minimum | None, doc("What the scenario declares to be enough; null: before it could.")
    ] = None
    unsent: Annotated[int, doc("Requests that were never due.")]
    interrupted: Annotated[bool, doc("Ended before its time by whoever ran it.")] = False
    cache: Annotated[CachePreparation, doc("How the prefix cache was brought into its state.")] = (
        msgspec.field(default_factory=CachePreparation)
    )
    t0_unix_ns: Annotated[int, doc("Wall clock at t0.")]
    t0_monotonic_ns: Annotated[
        int | None, doc("The same moment on the clock of the records; null: not kept.")
    ] = None
    server_counters: Annotated[
        dict[str, float] | None, doc("The engine's counters: after less before; null: it has none.")
    ]
    engine_log: Annotated[str | None, doc("Below the run folder; null: the engine is not ours.")] = None
    client: Annotated[ClientStats, doc("How the load generator fared.")]
    workers: Annotated[
        Workers | None, doc("How many load processes, and by what that was decided; null: not kept.")
    ] = None
    nodes: Annotated[
        tuple[LoadNode, ...] | UnsetType, doc("Of a cluster that sent the load; missing: this machine did.")
    ] = UNSET
    urls: Annotated[
        tuple[str, ...] | UnsetType,
        doc("Replicas of one model that the requests were spread over; missing: one server."),
    ] = UNSET
    balance: Annotated[Balance | UnsetType, doc("How they were spread.")] = UNSET
    metrics_urls: Annotated[
        tuple[str, ...] | UnsetType, doc("Where counters were read, if not at the server's own URLs.")
    ] = UNSET
    roles: Annotated[
        tuple[RoleFacts, ...] | UnsetType,
        doc("Engines that share the work on each request; the counters are then of its whole way."),
    ] = UNSET
    counter_restarts: Annotated[int, doc("Counters that fell: the engine restarted.")] = 0
    server_histograms: Annotated[
        dict[str, HistogramIncrease] | None, doc("Of the engine, over the cell; null: not kept.")
    ] = None
    telemetry: Annotated[
        Sampled | None, doc("What was sampled, and what could not be; null: measured without.")
    ] = None
    prices: Annotated[Prices | None, doc("What an hour costs, where that was given.")] = None
    imported: Annotated[Imported | None, doc("Of another tool's file; null: bench measured it.")] = None
    engine_exited: Annotated[str | None, doc("How, where it ended during the cell.")]
