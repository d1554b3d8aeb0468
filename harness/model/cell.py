"""One cell of summary.json: one backend at one load point in one repeat."""

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
    Replicas,
    Requests,
    Roles,
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
from harness.model.machine import Cost, Energy, Gpu, Host, Limiter, LoadNodeUse, Server, TelemetryHealth
from harness.model.metrics import Measured
from harness.model.record import UNSET, UnsetType, doc
from harness.model.validity import Validity

State = Literal["under load", "saturated", "unstable"]


class CellResult(Measured, frozen=True, kw_only=True):
    """One backend at one load point in one repeat. Times in ms unless a name says otherwise."""

    load: Annotated[Load, doc("The load point, and how its requests arrive.")]
    started_unix_ns: Annotated[int, doc("Wall clock at t0 of the cell.")]
    workload_sha256: Annotated[
        str, doc("Of the requests before the dialect: equal for cells that may be compared.")
    ]
    validity: Annotated[Validity, doc("Whether the figures can be the server's.")]
    requests: Annotated[Requests, doc("Counts.")]
    arrivals: Annotated[Arrivals | None, doc("Of an open loop, as asked and as sent.")]
    in_flight_mean: Annotated[
        float | None, doc("Requests in flight, averaged over the window, whatever became of them.")
    ] = None
    time_in_system_ms_mean: Annotated[float | None, doc("Measured answers: from the send to the end.")] = None
    effective_concurrency: Annotated[
        float | None, doc("Closed loop: in_flight_mean, less than the slots where slots wait or think.")
    ] = None
    offered_per_s: Annotated[float | None, doc("Open loop: requests meant to leave inside the window.")] = (
        None
    )
    backlog_growth_per_s: Annotated[
        float | None,
        doc("Open loop: requests' worth of work that arrived in the window and was not done in it."),
    ] = None
    conservation: Annotated[tuple[Law, ...], doc("Laws between the figures of the cell.")] = ()
    slo: Annotated[Slo | None, doc("Null without limits.")]
    state: Annotated[
        State | UnsetType | None,
        doc("Whether the load or the server set the pace: docs/verdicts.md; null where it is not known."),
    ] = UNSET
    state_why: Annotated[str | None, doc("The evidence for it, or why there is none.")] = None
    steady_state: Annotated[SteadyState, doc("Where the steady part lies.")]
    standstill: Annotated[
        Standstill | UnsetType | None,
        doc("Time in which the load generator did not run; null: not recorded."),
    ] = UNSET
    engine_stall: Annotated[
        EngineStall | UnsetType | None,
        doc("The longest time in which the engine sent nothing and should have; null: none, or not known."),
    ] = UNSET
    backlog: Annotated[Backlog | None, doc("Of an open loop.")] = None
    probe: Annotated[ProbeSize | None, doc("Of --find-capacity.")] = None
    window_start_s: Annotated[
        float | None, doc("Start of the measured window, s from the first due send.")
    ] = None
    window_s: Annotated[float | None, doc("Length of the measured window, s.")]
    makespan_s: Annotated[
        float | None, doc("First measured send to the end of the last answer, s; null where one failed.")
    ]
    window_kind: Annotated[Literal["steady", "whole"] | None, doc("What the window is of.")]
    slot_idle_ms: Annotated[
        LatencyStats | None, doc("Closed loop: from a slot's turn to its send, connecting left out.")
    ] = None
    slot_idle_share: Annotated[
        float | None,
        doc("Closed loop: idle / (idle + busy) time of the slots, by which the concurrency is lowered."),
    ] = None
    synchrony: Annotated[Synchrony | None, doc("Closed loop: whether slots send together.")] = None
    sample: Annotated[Sample | None, doc("Whether it is enough.")] = None
    output_tokens: Annotated[OutputTokens, doc("As the server counts them.")]
    events_per_arrival: Annotated[
        float | None, doc("Text events that came as one; above 1 the gaps between them are not seen.")
    ] = None
    prefix_cache_source: Annotated[str | None, doc("usage or counters.")]
    prefix_cache_ideal_by_block: Annotated[
        dict[str, float] | None, doc("The same for caches of whole blocks, by block size in tokens.")
    ]
    answers: Annotated[Answers | None, doc("Null where nothing was expected.")]
    constraint: Annotated[Constraint | None, doc("Null where no answer was constrained.")]
    start: Annotated[
        dict[str, float | None] | None, doc("Seconds until provided, ready, and the first answer.")
    ]
    template_tokens: Annotated[TemplateTokens | None, doc("Of the chat template.")]
    by_kind: Annotated[dict[str, ClassStats] | None, doc("Latencies by class of request.")]
    adapters: Annotated[AdapterFigures | None, doc("Null where no request names an adapter.")] = None
    images: Annotated[ImageFigures | None, doc("Null where no request could have an image.")] = None
    by_turn: Annotated[dict[str, ClassStats] | None, doc("Latencies by turn of the chats.")]
    by_depth: Annotated[
        dict[str, ClassStats] | None, doc("Latencies of recorded calls by the tokens of their prompts.")
    ] = None
    sessions: Annotated[SessionCounts | None, doc("Null where no recorded sessions were replayed.")] = None
    gpu: Annotated[Gpu | None, doc("Null where the engine was seen on none.")]
    server: Annotated[Server | None, doc("Null where nothing is known of the engine.")]
    host: Annotated[Host | None, doc("Null where nothing was sampled.")]
    replicas: Annotated[Replicas | None, doc("By URL, where there were several; null: one server.")] = None
    roles: Annotated[Roles | None, doc("Null where no engine has a role.")] = None
    load_nodes: Annotated[
        tuple[LoadNodeUse, ...], doc("Of a cluster that sent the load; empty: this machine did.")
    ] = ()
    energy: Annotated[Energy | None, doc("Null without a counter or sensor.")]
    cost: Annotated[Cost | None, doc("Null without a price.")]
    limiter: Annotated[Limiter | None, doc("Null where it is not known.")]
    telemetry: Annotated[TelemetryHealth, doc("How the sampling fared.")]
    client: Annotated[ClientStats, doc("How the load generator fared.")]
    imported: Annotated[Imported | None, doc("Of another tool's file; null: bench measured it.")] = None
    conditions: Annotated[Conditions, doc("What a comparison looks at.")]
    null_reasons: Annotated[dict[str, str], doc("Why a figure is null, by its dotted path.")]

    @property
    def point(self) -> LoadPoint:
        return self.load.point

    @property
    def invalid(self) -> bool:
        return self.validity.verdict == "INVALID"
