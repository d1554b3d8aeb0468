"""cell.json: what is known of one measured cell besides its records. Nothing here is derived from them."""

from typing import Annotated, Any, Literal

import msgspec

from harness.model.choices import Balance
from harness.model.client import ClientStats
from harness.model.ending import LATER_LOADS, EndKind
from harness.model.figures import ProbeSize
from harness.model.identity import AnsweredModel, Identity
from harness.model.imported import Imported
from harness.model.load import Load
from harness.model.machine import Prices
from harness.model.record import UNSET, Record, UnsetType, doc
from harness.model.sampled import Sampled

Number = int | float
Value = bool | int | float | str | None


class CellWorkload(Record, frozen=True, kw_only=True):
    """Facts about the requests that figures and verdicts need when the workload file is not there."""

    sha256: Annotated[str, doc("SHA-256 of the requests before the engine's dialect; empty: not known.")]
    exact_lengths: Annotated[
        bool | None, doc("Whether the engine's own tokenizer counted the prompts; null: not known.")
    ]
    in_stretches: Annotated[bool, doc("Whether kinds of request come one after another.")] = False
    output_tokens: Annotated[
        int | None, doc("Output tokens asked for per answer; null: requests differ, or not known.")
    ]
    exact_output: Annotated[bool, doc("Whether the length of answers is forced.")]
    content_tokens_mean: Annotated[float, doc("Mean tokens per prompt, without those of the chat template.")]
    ideal_hit_rate: Annotated[
        float, doc("Share of prompt tokens that an unlimited cache could reuse from a cold start, 0 to 1.")
    ]
    shared_share: Annotated[
        float | None,
        doc("Share of prompt tokens reusable with the shared prefixes cached, 0 to 1; null: not kept."),
    ] = None
    primed_share: Annotated[
        float | None,
        doc("Share of prompt tokens reusable with first turns cached, 0 to 1; null: taken for all."),
    ] = None
    adapters: Annotated[int, doc("LoRA adapters that requests may name; 0: none does.")] = 0
    cold_cache: Annotated[bool, doc("Whether the scenario asks for an empty prefix cache.")]
    content: Annotated[
        str | None, doc("Content of the prompts: random, prose, code, json or a file; null: not kept.")
    ] = None
    images: Annotated[str | None, doc("Images of the requests, in words; null: none.")] = None
    output_spread: Annotated[
        float | None,
        doc(
            "Share by which answers are asked longer or shorter; null: these prompts have none, or not kept."
        ),
    ] = None
    equal_prompts: Annotated[
        int | None, doc("Most first turns that have one prompt, 1: all differ; null: not kept.")
    ] = None
    file: Annotated[str | None, doc("File of the requests, below the run folder; null: not kept.")] = None


class CellRequest(Record, frozen=True, kw_only=True):
    """Settings that all requests of a cell share; null where they were not kept."""

    api: Annotated[str, doc("API in use, by its name in docs/apis.md.")] = "chat"
    temperature: Annotated[float | None, doc("Sampling temperature, 0: greedy; null: not kept.")] = None
    top_p: Annotated[
        float | None, doc("Probability mass that tokens are drawn from, 0 to 1; null: not kept.")
    ] = None
    seed: Annotated[int | None, doc("Seed of sampling; null: nothing is drawn.")] = None
    thinking: Annotated[str | None, doc("Thinking as requested: on or off; null: not kept.")] = None
    exact_output: Annotated[
        bool | None, doc("Whether answers were to have an exact length; null: not kept.")
    ] = None
    # A dialect may send any JSON.
    fields: Annotated[
        dict[str, Any] | None,
        doc("JSON fields that every request has, in the engine's terms; null: not kept."),
    ] = None
    own_fields: Annotated[dict[str, Any] | UnsetType, doc("[request] fields; missing: none.")] = UNSET
    shapes: Annotated[
        tuple[str, ...], doc("Kinds of constraints on the output that occur, such as json_schema.")
    ] = ()
    tools: Annotated[bool, doc("Whether any request offers tools.")] = False
    unsupported: Annotated[
        dict[str, str],
        doc("Settings that the engine's requests have no field for, and what follows, by name."),
    ] = msgspec.field(default_factory=dict)


class Minimum(Record, frozen=True, kw_only=True):
    """The least time and number of answers that the scenario declares enough for a cell."""

    seconds: Annotated[Number, doc("Least time from the first measured send to the last measured end, s.")]
    answers: Annotated[int, doc("Least number of measured answers.")]
    coverage: Annotated[
        float, doc("Share of the duration that answers must reach, 0 to 1; 0: none is asked for.")
    ] = 0
    duration_s: Annotated[
        Number | None, doc("Time for which requests were to be sent, s; null: a number of requests.")
    ] = None
    after_warmup: Annotated[
        bool, doc("Whether that time began with the first measured request; false: with the load.")
    ] = False
    requests: Annotated[
        int | None, doc("Requests asked for, without warm-up; a file may hold fewer. Null: not kept.")
    ] = None
    held: Annotated[
        int | None, doc("Requests that the file holds, without warm-up; null: no file, or not kept.")
    ] = None


class CachePreparation(Record, frozen=True, kw_only=True):
    """How the prefix cache was brought into its state; null where that was not kept."""

    requested: Annotated[
        str | None, doc("State that the scenario asks for: cold, warm, primed or any; null: not kept.")
    ] = None
    method: Annotated[
        str | None, doc("Method that emptied the cache: none, off, reset, restart or salt; null: not kept.")
    ] = None
    reset: Annotated[bool | None, doc("Whether the engine emptied the cache when asked; null: not kept.")] = (
        None
    )
    description: Annotated[str | None, doc("Preparation of the prefix cache, in words; null: not kept.")] = (
        None
    )
    salted: Annotated[bool, doc("Whether a salt kept the prompts apart from earlier ones.")] = False
    salt: Annotated[
        str,
        doc("Salt that kept them apart, in the engine's field for it or before each prompt; empty: none."),
    ] = ""
    primed: Annotated[int, doc("Requests that filled the cache again before the window.")] = 0


class HistogramIncrease(Record, frozen=True, kw_only=True):
    """Increase of one of the engine's own histograms over the cell, in seconds."""

    buckets: Annotated[
        tuple[tuple[float | None, float | None], ...],
        doc("Upper bounds, s, each with the observations up to it; the last bound is null: none."),
    ]
    sum: Annotated[float, doc("Sum of all observations, s.")]
    count: Annotated[float, doc("Number of observations.")]


class RoleFacts(Record, frozen=True, kw_only=True):
    """Counters and histograms of the engines of one role, over the cell."""

    role: Annotated[str, doc("Role of the engines: prefill or decode.")]
    places: Annotated[
        tuple[int, ...], doc("Positions of the engines in `metrics_urls`: N of the series engine.N.")
    ]
    urls: Annotated[tuple[str, ...], doc("URLs that the metrics of the engines were read from.")]
    counters: Annotated[
        dict[str, float] | None,
        doc("Increase of the engines' counters over the cell, by name; null: one did not answer."),
    ]
    restarts: Annotated[int, doc("Restarts of the engines in the cell, seen by counters that fell.")] = 0
    histograms: Annotated[
        dict[str, HistogramIncrease], doc("Increase of the engines' own histograms over the cell, by name.")
    ]


class Workers(Record, frozen=True):
    """Number of processes that send a cell's requests, and what decided it."""

    count: Annotated[int | None, doc("Number of load processes; null: by the harness's own constants.")]
    source: Annotated[
        Literal["given", "doctor", "constants"],
        doc("Source of the number: --workers, `bench doctor`, or constants."),
    ]
    per_worker: Annotated[
        int | None,
        doc("Streams, or arrivals per second, that one carries here, by `bench doctor`; null: not used."),
    ] = None


class LoadNode(Record, frozen=True, kw_only=True):
    """A machine of a cluster that sent load, and how its clock differs from that of bench's machine."""

    name: Annotated[str, doc("Host name of the node.")]
    address: Annotated[str, doc("Address by which the cluster knows the node.")]
    kernel: Annotated[str, doc("Release of the node's kernel.")]
    cpus: Annotated[int, doc("CPUs of the node that the load could use.")]
    workers: Annotated[tuple[int, ...], doc("Numbers of the node's load processes, as in the requests.")]
    lost: Annotated[str | None, doc("Reason why the node was lost in this cell; null: it was not.")]
    clock_offset_ms: Annotated[
        float | None, doc("Monotonic clock of the node less that of bench's machine, ms; null: not known.")
    ]
    clock_uncertainty_ms: Annotated[
        float | None, doc("Uncertainty of the clock offset, ms; null: not known.")
    ]
    drift_ppm: Annotated[
        float | None, doc("Rate by which the node's clock runs faster than bench's, ppm; null: not known.")
    ]
    rtt_ms: Annotated[float | None, doc("Round-trip time of the fastest ping, ms; null: none came back.")]
    pings: Annotated[int, doc("Pings that came back.")]
    path_rtt_ms: Annotated[
        float | None, doc("Time of the fastest connection to the server, ms; null: it made none.")
    ]
    start_skew_ms: Annotated[
        float | None, doc("Time by which the node started late, ms; null: it did not start.")
    ]
    longest_stall_ms: Annotated[
        float | None,
        doc("Longest time for which one of its processes stood still, ms; null: none came to its end."),
    ]
    clock_step_ms: Annotated[
        float | UnsetType | None,
        doc("Largest step of the node's real-time clock, ms; null: its stamps do not use it."),
    ] = UNSET

    @property
    def place(self) -> str:
        return f"{self.name} ({self.address})"


class EngineFound(Record, frozen=True, kw_only=True):
    """The engine that a cell was measured on: another start of the same backend may differ."""

    served_name: Annotated[str | None, doc("Name of the served model; null: not known.")]
    image_digest: Annotated[str | None, doc("Digest of the container image; null: none, or built here.")]
    weights_sha256: Annotated[
        str | None, doc("SHA-256 of the weights; null: the engine fetched or brought them.")
    ]
    packages_sha256: Annotated[
        str | None,
        doc(
            "SHA-256 of its environment's packages but pip, setuptools and wheel, as lines NAME==VERSION; "
            "null: no environment of bench."
        ),
    ] = None
    # Every engine tells other things.
    info: Annotated[
        dict[str, Any], doc("Settings that the engine reports, by key, such as the size of its KV cache.")
    ]


class CellFacts(Record, frozen=True, kw_only=True):
    """Everything known of a cell besides its records. Nothing here is derived from them."""

    cell: Annotated[str, doc("Name of the cell's folder.")]
    identity: Annotated[Identity, doc("Identity of the cell: backend, version, launch and repeat.")]
    load: Annotated[Load, doc("Load point, and how its requests arrive.")]
    workload: Annotated[CellWorkload, doc("Facts about the requests of the cell.")]
    request: Annotated[CellRequest, doc("Settings that all requests share.")] = msgspec.field(
        default_factory=CellRequest
    )
    random_weights: Annotated[
        bool, doc("Whether the model is known to have random weights, so that its texts are nonsense.")
    ] = False
    prefix_cache: Annotated[
        bool | None, doc("Whether the prefix cache is on, as declared; null: not known.")
    ] = None
    habits: Annotated[
        dict[str, Value], doc("Behaviour of the engine's API that its dialect declares, by name.")
    ] = msgspec.field(default_factory=dict)
    engine_values: Annotated[
        dict[str, Value] | None,
        doc("Values of [engine.values] as started, by name; null: bench did not start it."),
    ] = None
    engine: Annotated[
        EngineFound | UnsetType, doc("Engine as it was found when the cell was measured; missing: not kept.")
    ] = UNSET
    answered_models: Annotated[
        tuple[AnsweredModel, ...] | UnsetType, doc("Models that whole answers name; missing: not kept.")
    ] = UNSET
    start: Annotated[
        dict[str, float | None] | None,
        doc("Times of the engine's start: provide_s, load_s, first_answer_s; null: bench did not start it."),
    ] = None
    after_start: Annotated[
        bool, doc("Whether the first requests after a start of the engine were to be measured, and were.")
    ] = False
    planned: Annotated[int, doc("Requests to be measured, without warm-up.")]
    most_prompt_tokens: Annotated[
        int | None,
        doc(
            "Bytes of the longest first prompt and tokens of a short chat: no first prompt has more tokens; "
            "null: not known, or requests have more than a text."
        ),
    ] = None
    echoed: Annotated[
        int | None,
        doc("Measured first answers of chats that hold the beginnings of their prompts; null: not kept."),
    ] = None
    slo: Annotated[
        dict[str, dict[str, Number]] | None,
        doc("Limits in ms, by latency and share of requests; null: none."),
    ] = None
    probe: Annotated[
        ProbeSize | None, doc("Least size of this probe of --find-capacity; null: no search.")
    ] = None
    minimum: Annotated[
        Minimum | None, doc("Least time and answers that the scenario declares enough; null: not kept.")
    ] = None
    unsent: Annotated[int, doc("Requests that were never due, warm-up included.")]
    interrupted: Annotated[bool, doc("Whether the cell was ended early by whoever ran it.")] = False
    cache: Annotated[CachePreparation, doc("Preparation of the prefix cache.")] = msgspec.field(
        default_factory=CachePreparation
    )
    t0_unix_ns: Annotated[int, doc("Unix time at t0, the start of the cell, ns.")]
    t0_monotonic_ns: Annotated[
        int | None, doc("Monotonic clock at t0, which the records count from, ns; null: not kept.")
    ] = None
    server_counters: Annotated[
        dict[str, float] | None,
        doc("Increase of the engine's counters over the cell, by name; null: none, or no answer."),
    ]
    engine_log: Annotated[
        str | None, doc("Path of the engine's log when it was written; null: bench did not start it.")
    ] = None
    client: Annotated[ClientStats, doc("Figures of the load generator itself.")]
    workers: Annotated[
        Workers | None, doc("Number of load processes, and what decided it; null: not kept.")
    ] = None
    nodes: Annotated[
        tuple[LoadNode, ...] | UnsetType,
        doc("Nodes of a cluster that sent the load; missing: this machine did."),
    ] = UNSET
    urls: Annotated[
        tuple[str, ...] | UnsetType,
        doc("URLs of one model's replicas that the requests were spread over; missing: one server."),
    ] = UNSET
    balance: Annotated[
        Balance | UnsetType,
        doc("Method by which the requests were spread over the URLs; missing: one server."),
    ] = UNSET
    metrics_urls: Annotated[
        tuple[str, ...] | UnsetType, doc("URLs that counters were read from; missing: the server's own.")
    ] = UNSET
    roles: Annotated[
        tuple[RoleFacts, ...] | UnsetType,
        doc("Facts about prefill and decode engines that share each request; missing: no roles."),
    ] = UNSET
    counter_restarts: Annotated[
        int, doc("Restarts of the engine in the cell, seen by counters that fell.")
    ] = 0
    counter_falls_s: Annotated[
        tuple[tuple[float, float], ...],
        doc("Last read before each of them and first read after it, s from t0; empty: none, or not kept."),
    ] = ()
    server_histograms: Annotated[
        dict[str, HistogramIncrease] | None,
        doc("Increase of the engine's own histograms over the cell, by name; null: not kept."),
    ] = None
    telemetry: Annotated[
        Sampled | None, doc("Sources of telemetry, and what could not be sampled; null: measured without.")
    ] = None
    prices: Annotated[Prices | None, doc("Price of an hour of the hardware; null: none was given.")] = None
    imported: Annotated[
        Imported | None, doc("File of another tool that the cell is from; null: bench measured it.")
    ] = None
    engine_exited: Annotated[
        str | None, doc("How the engine ended, hung or was too slow to answer; null: none of these is known.")
    ]
    engine_end: Annotated[
        EndKind | None, doc("Kind of what engine_exited says; null: there is none, or it was not kept.")
    ] = None

    @property
    def engine_over(self) -> bool:
        """Whether the engine was asked nothing more in this life."""
        return bool(self.engine_exited) and self.engine_end not in LATER_LOADS
