"""One cell of summary.json: one backend at one load point in one repeat."""

from collections.abc import Iterable
from typing import Annotated, Literal

from harness.model.client import ClientStats
from harness.model.conditions import Conditions
from harness.model.figures import (
    AdapterFigures,
    Answers,
    Arrivals,
    Backlog,
    ClassStats,
    Constraint,
    EngineStall,
    ImageFigures,
    LatencyStats,
    Law,
    OutputTokens,
    ProbeSize,
    Requests,
    Sample,
    SessionCounts,
    Slo,
    Standstill,
    SteadyState,
    Synchrony,
    TemplateTokens,
)
from harness.model.imported import Imported
from harness.model.load import Load, LoadPoint
from harness.model.machine import (
    Cost,
    Energy,
    Gpu,
    Host,
    Limiter,
    LoadNodeUse,
    Server,
    TelemetryHealth,
    TtftParts,
)
from harness.model.metrics import Measured
from harness.model.record import UNSET, UnsetType, doc
from harness.model.replicas import Replicas, Roles
from harness.model.validity import Validity

State = Literal["under load", "saturated", "unstable"]


class CellResult(Measured, frozen=True, kw_only=True):
    """One backend at one load point in one repeat. Times in ms unless a name says otherwise."""

    load: Annotated[Load, doc("Load point, and how its requests arrive.")]
    started_unix_ns: Annotated[int, doc("Unix time at the start of the cell (t0), ns.")]
    workload_sha256: Annotated[
        str, doc("SHA-256 of the requests before the engine's dialect; equal: cells may be compared.")
    ]
    validity: Annotated[
        Validity, doc("Verdict on whether the figures can be the server's, with the reasons.")
    ]
    requests: Annotated[Requests, doc("Number of requests, by what became of them.")]
    arrivals: Annotated[
        Arrivals | None, doc("Arrivals of an open loop, as asked and as sent; null: closed loop.")
    ]
    in_flight_mean: Annotated[
        float | None,
        doc("Mean requests in flight over the window, whatever became of them; null: no answer."),
    ] = None
    time_in_system_ms_mean: Annotated[
        float | None, doc("Mean time from the send to the end of measured answers, ms; null: no answer.")
    ] = None
    effective_concurrency: Annotated[
        float | None,
        doc("Mean requests in flight of a closed loop, less than its slots if they wait; null: open loop."),
    ] = None
    offered_per_s: Annotated[
        float | None,
        doc("Requests per second that an open loop was to send in the window; null: closed or not known."),
    ] = None
    backlog_growth_per_s: Annotated[
        float | None,
        doc("Growth of an open loop's work not done, requests per second; null: closed or not known."),
    ] = None
    conservation: Annotated[
        tuple[Law, ...], doc("Laws between the figures of the cell, and whether each holds.")
    ] = ()
    slo: Annotated[Slo | None, doc("Requests inside the limits of [slo]; null: no limits.")]
    state: Annotated[
        State | UnsetType | None,
        doc("Whether load or server set the pace of the cell (docs/verdict-rules.md); null: not known."),
    ] = UNSET
    state_why: Annotated[
        str | None, doc("Evidence for the state, or why it is not known; null: not recorded.")
    ] = None
    steady_state: Annotated[
        SteadyState, doc("Bounds of ramp, steady part and drain, and whether the cell was steady.")
    ]
    standstill: Annotated[
        Standstill | UnsetType | None,
        doc("Time in which the load generator did not run; null: not recorded, or nothing sent."),
    ] = UNSET
    engine_stall: Annotated[
        EngineStall | UnsetType | None,
        doc("Longest time in which the engine should have sent but sent nothing; null: none, or not known."),
    ] = UNSET
    backlog: Annotated[
        Backlog | None,
        doc("Backlog of an open loop, early and late; null: closed loop, or too few requests."),
    ] = None
    probe: Annotated[
        ProbeSize | None, doc("Least size of this probe of --find-capacity; null: no search.")
    ] = None
    window_start_s: Annotated[
        float | None, doc("Start of the measured window, s from the start of the cell; null: no answer.")
    ] = None
    window_s: Annotated[float | None, doc("Length of the measured window, s; null: no answer.")]
    makespan_s: Annotated[
        float | None, doc("Time from the first measured send to the last end, s; null: one was not answered.")
    ]
    window_kind: Annotated[
        Literal["steady", "whole"] | None,
        doc("Part of the cell that the window is of: steady, or whole; null: no answer."),
    ]
    slot_idle_ms: Annotated[
        LatencyStats | None,
        doc("Time from a closed loop slot's turn to its send, ms, without connecting; null: open loop."),
    ] = None
    slot_idle_share: Annotated[
        float | None, doc("Idle / (idle + busy) time of a closed loop's slots, 0 to 1; null: open loop.")
    ] = None
    synchrony: Annotated[
        Synchrony | None,
        doc("Synchrony of a closed loop: whether slots send together; null: open loop, or too few requests."),
    ] = None
    sample: Annotated[
        Sample | None, doc("Size of the measured sample, against the least that is enough; null: not kept.")
    ] = None
    output_tokens: Annotated[
        OutputTokens, doc("Output tokens of the measured answers, as the server counts them.")
    ]
    events_per_arrival: Annotated[
        float | None,
        doc("Mean text events that came as one; above 1, gaps between them are not seen. Null: no text."),
    ] = None
    prefix_cache_source: Annotated[
        str | None, doc("Source of the hit rate: usage (answers) or counters (engine); null: neither has it.")
    ]
    prefix_cache_ideal_by_block: Annotated[
        dict[str, float] | None,
        doc("Ideal hit rate of a cache of whole blocks, by block size in tokens; null: not known."),
    ]
    answers: Annotated[Answers | None, doc("Right and wrong answers, by check; null: nothing was expected.")]
    constraint: Annotated[
        Constraint | None,
        doc("Cost of constrained output; null: no constrained and free answers to compare."),
    ]
    start: Annotated[
        dict[str, float | None] | None,
        doc("Times of the engine's start: provide_s, load_s, first_answer_s; null: bench did not start it."),
    ]
    template_tokens: Annotated[
        TemplateTokens | None, doc("Prompt tokens that the chat template adds; null: not known.")
    ]
    by_kind: Annotated[dict[str, ClassStats] | None, doc("Latencies by kind of request; null: one kind.")]
    adapters: Annotated[
        AdapterFigures | None, doc("Cost of LoRA adapters; null: no request names an adapter.")
    ] = None
    images: Annotated[ImageFigures | None, doc("Cost of images; null: no request could have an image.")] = (
        None
    )
    by_turn: Annotated[
        dict[str, ClassStats] | None,
        doc("Latencies by turn of the chats, from 1; null: no chats of several turns."),
    ]
    by_depth: Annotated[
        dict[str, ClassStats] | None,
        doc("Latencies of recorded calls, by tokens of their prompts; null: no recorded calls."),
    ] = None
    sessions: Annotated[
        SessionCounts | None, doc("Recorded sessions by how they ended; null: none were replayed.")
    ] = None
    gpu: Annotated[Gpu | None, doc("Use of the engine's GPUs; null: the engine was seen on none.")]
    server: Annotated[
        Server | None, doc("Counters, processes and queue of the engine; null: nothing is known.")
    ]
    host: Annotated[
        Host | None, doc("Use of the machine's cores, memory, disk and network; null: not sampled.")
    ]
    replicas: Annotated[
        Replicas | None, doc("Requests by URL of several servers of one model; null: one server.")
    ] = None
    ttft_parts: Annotated[
        TtftParts | None,
        doc("Parts of the mean TTFT; null: the engine does not count them, or counted other requests."),
    ] = None
    roles: Annotated[
        Roles | None,
        doc("Work of prefill and decode engines behind one address; null: no engine has a role."),
    ] = None
    load_nodes: Annotated[
        tuple[LoadNodeUse, ...],
        doc("Use of the cluster's nodes that sent the load; empty: this machine did."),
    ] = ()
    energy: Annotated[Energy | None, doc("Energy used over the window; null: no counter or sensor.")]
    cost: Annotated[Cost | None, doc("Cost from a given price; null: no price.")]
    limiter: Annotated[Limiter | None, doc("Resource that limited the cell; null: not known.")]
    telemetry: Annotated[TelemetryHealth, doc("Health of the sampling: reads, failures and cost.")]
    client: Annotated[ClientStats, doc("Figures of the load generator itself.")]
    imported: Annotated[
        Imported | None, doc("File of another tool that the cell is from; null: bench measured it.")
    ] = None
    conditions: Annotated[Conditions, doc("Conditions of the cell that a comparison looks at.")]
    null_reasons: Annotated[
        dict[str, str],
        doc("Reasons why figures are null, by dotted path; of classes, only where requests failed."),
    ]

    @property
    def point(self) -> LoadPoint:
        return self.load.point

    @property
    def versions(self) -> tuple[str, str]:
        """Parts of `engine_version`: of the package, or of the server where it is the only one, and of the
        server where it is another one. "": not known.
        """
        package, _, server = (self.engine_version or "").partition(" (server: ")
        return package, server.removesuffix(")")

    def validity_of(self, metrics: Iterable[str]) -> Validity:
        """The validity of these values alone: goodput is computed from each figure that has a limit."""
        limited = [limit.metric for limit in self.slo.limits] if self.slo else None
        from_limits = ("goodput_requests_per_s", "slo.attainment")
        return self.validity.about(
            [
                source
                for metric in metrics
                for source in (limited if limited is not None and metric in from_limits else [metric])
            ]
        )

    @property
    def invalid(self) -> bool:
        return self.validity.verdict == "INVALID"
