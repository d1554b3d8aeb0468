"""doctor.json: how exact the load generator is on this machine."""

from typing import Annotated, Literal

from harness.model.cell_facts import LoadNode
from harness.model.client import ClientStats
from harness.model.manifest import HostFacts
from harness.model.record import Record, doc
from harness.model.validity import Reason, Verdict


class ErrorSpread(Record, frozen=True):
    """Quantiles of absolute errors, in ms."""

    p50: Annotated[float, doc("Median absolute error, ms.")]
    p99: Annotated[float, doc("99th percentile of the absolute errors, ms.")]
    max: Annotated[float, doc("Largest absolute error, ms.")]


class ClientErrors(Record, frozen=True):
    """Errors of the client: what it measured less what the server's ledger has, in ms."""

    ttft_ms: Annotated[
        ErrorSpread | None, doc("Error of the time to first token (TTFT), ms; null: answers come whole.")
    ]
    itl_ms: Annotated[
        ErrorSpread | None, doc("Error of the gaps between tokens (ITL), ms; null: answers come whole.")
    ]
    e2e_ms: Annotated[
        ErrorSpread, doc("Error of the time to the last token, or to the whole answer (E2E), ms.")
    ]

    @property
    def p99_ms(self) -> float:
        """The larger p99 of TTFT and ITL, or that of E2E if answers come whole: exactness is judged by it."""
        parts = [errors.p99 for errors in (self.ttft_ms, self.itl_ms) if errors is not None]
        return max(parts, default=self.e2e_ms.p99)


class ScriptedServer(Record, frozen=True):
    """How late the scripted server wrote, and its CPU use.

    Its ledger has when it wrote, so its lateness is no part of the client's errors.
    """

    late_p50_ms: Annotated[
        float | None,
        doc("Median lateness of the server's writes against its script, ms; null: none written."),
    ]
    late_p99_ms: Annotated[
        float | None, doc("99th percentile of the server's lateness, ms; null: none written.")
    ]
    late_max_ms: Annotated[float | None, doc("Largest lateness of the server, ms; null: none written.")]
    busy_share: Annotated[
        float | None, doc("Share of one core that the scripted server used; null: not known.")
    ]


class Dispersions(Record, frozen=True):
    """Dispersions of the arrivals of an open loop: variance over mean of counts in bins; 1 is Poisson."""

    drawn: Annotated[float, doc("Dispersion of the arrivals as they were scheduled.")]
    received: Annotated[float, doc("Dispersion of the arrivals as the server received them.")]


class TriedLoad(Record, frozen=True):
    """A closed loop of `value` streams, or Poisson arrivals at `value` per second."""

    kind: Annotated[
        Literal["concurrency", "rate"], doc("Kind of load: concurrency (closed loop) or rate (open loop).")
    ]
    value: Annotated[int, doc("Streams of a closed loop, or requests per second of an open loop.")]
    gap_ms: Annotated[float, doc("Time between two tokens of an answer, as scripted, ms.")]
    tokens: Annotated[int, doc("Tokens of each answer.")]
    requests: Annotated[int, doc("Requests of the load, no fewer than a p99 needs.")]

    @property
    def title(self) -> str:
        if self.kind == "concurrency":
            return f"{self.value:,} streams, gap {self.gap_ms:g} ms"
        return f"open loop, {self.value:,}/s"


class OnNode(Record, frozen=True):
    """A load node of a cluster, and how its sends compare with the server's ledger."""

    node: Annotated[LoadNode, doc("Load node and its clock.")]
    requests: Annotated[int, doc("Requests that the node sent.")]
    before_ms: Annotated[
        tuple[float, float, float] | None,
        doc("Time from sends to their receipt, ms: least, median, most; null: not known, or none sent."),
    ]


class MeasuredLoad(Record, frozen=True, kw_only=True):
    """Verdict, errors and costs of the client at one load."""

    load: Annotated[TriedLoad, doc("Load that was asked for.")]
    verdict: Annotated[Verdict, doc("Verdict of the validity rules, as on a cell of a run.")]
    reasons: Annotated[tuple[Reason, ...], doc("Validity rules that were broken.")]
    errors: Annotated[
        ClientErrors | None,
        doc("Errors of the client; null: client and server do not hold the same requests and events."),
    ]
    tokens_per_s: Annotated[
        float, doc("Output tokens per second in the window; answers per second if answers come whole.")
    ]
    cpu_us_per_token: Annotated[
        float, doc("CPU time of the load processes per token, µs; per answer if answers come whole.")
    ]
    client: Annotated[ClientStats, doc("Figures of the load generator itself.")]
    server: Annotated[ScriptedServer, doc("Lateness and CPU use of the scripted server.")]
    arrivals: Annotated[
        Dispersions | None, doc("Dispersions of the arrivals; null: closed loop, or errors not known.")
    ]
    other_cores: Annotated[float | None, doc("Cores that other work kept busy meanwhile; null: not known.")]
    title: Annotated[str, doc("Title of the load, for people.")]
    nodes: Annotated[
        tuple[OnNode, ...], doc("Nodes of a cluster that sent the load; empty: this machine did.")
    ] = ()

    def exact(self, tolerance_ms: float) -> bool:
        return self.verdict == "VALID" and self.errors is not None and self.errors.p99_ms <= tolerance_ms

    def on_time(self, tolerance_ms: float) -> bool:
        return self.verdict == "VALID" and self.send_lag_p99_ms <= tolerance_ms

    @property
    def send_lag_p99_ms(self) -> float:
        lag_ms = self.client.send_lag_ms.p99
        return float("inf") if lag_ms is None else lag_ms


class Reach(Record, frozen=True):
    """The heaviest load such that it and every lighter one keeps to the tolerance and is VALID."""

    tolerance_ms: Annotated[float, doc("Tolerance that the p99 of the errors kept to, ms.")]
    streams: Annotated[int, doc("Streams of the heaviest closed loop that kept to the tolerance.")]
    tokens_per_s: Annotated[
        float, doc("Most tokens per second that kept to the tolerance; answers if they come whole.")
    ]


class Exactness(Record, frozen=True, kw_only=True):
    """The conclusion from all loads: how exact the client is here, and up to which load."""

    sentence: Annotated[str, doc("Conclusion in one sentence.")]
    reaches: Annotated[
        tuple[Reach, ...], doc("Reach of each tolerance, rising, that goes further than the one before.")
    ]
    exact_streams: Annotated[
        int, doc("Most streams at which the client is exact to 1 ms; 0: not even at the lightest load.")
    ]
    on_time_per_s: Annotated[int, doc("Highest open-loop rate whose requests left within 1 ms; 0: none did.")]
    tried_streams: Annotated[int, doc("Most streams that were tried.")]
    tried_per_s: Annotated[int, doc("Highest open-loop rate that was tried, requests per second.")]
    streams_per_worker: Annotated[
        int, doc("Streams that keep a load process at about half a core; 0: not known.")
    ]
    arrivals_per_worker: Annotated[
        int, doc("Arrivals per second that keep a load process at about half a core; 0: not known.")
    ]
    limits: Annotated[tuple[str, ...], doc("Limits that keep the client from being exact, in words.")]
    hints: Annotated[tuple[str, ...], doc("Advice on what to change about the machine or the load.")]
    fit_to_measure: Annotated[
        bool, doc("Whether the client is exact at as many streams as a run should be able to use.")
    ]


class ClockFacts(Record, frozen=True, kw_only=True):
    """The clock and the receive stamps that times come from, and their precision."""

    source: Annotated[str | None, doc("Name of the kernel's clock source, such as tsc; null: not known.")]
    resolution_ns: Annotated[float, doc("Resolution of the monotonic clock, ns.")]
    kernel_receive_stamps: Annotated[bool, doc("Whether the kernel stamps what arrives.")]
    stamp_uncertainty_ns: Annotated[int, doc("Uncertainty of a kernel stamp on the monotonic clock, ns.")]


class LimitFacts(Record, frozen=True, kw_only=True):
    """Limits on the number of connections. Null: no limit, or not known."""

    file_descriptors_soft: Annotated[
        int, doc("Open files that a process may have, before bench raises the limit.")
    ]
    file_descriptors_hard: Annotated[
        int | None, doc("Open files to which the limit can be raised; null: no limit.")
    ]
    ephemeral_ports: Annotated[
        tuple[int, int] | None, doc("First and last local port of outgoing connections; null: not known.")
    ]
    connections_to_one_server: Annotated[
        int | None, doc("Connections to one server that both limits allow; null: no limit is known.")
    ]


class DoctorResult(Record, frozen=True, kw_only=True):
    """How exact the load generator is on this machine, and what limits it."""

    version: Annotated[str, doc("Version of the harness.")]
    date: Annotated[str, doc("Time of the examination, UTC, ISO 8601.")]
    api: Annotated[str, doc("API of the requests, by its name in docs/apis.md.")] = "chat"
    verdict: Annotated[Exactness, doc("Conclusion from all loads.")]
    host: Annotated[HostFacts, doc("Facts about the machine: CPU, memory, kernel.")]
    clock: Annotated[ClockFacts, doc("Clock and receive stamps, and how exact they are.")]
    limits: Annotated[LimitFacts, doc("Limits on the number of connections.")]
    server_core: Annotated[
        int | None, doc("Number of the core that the scripted server had for itself; null: none.")
    ]
    loads: Annotated[tuple[MeasuredLoad, ...], doc("Results by load, lightest first.")]
    repeated: Annotated[tuple[MeasuredLoad, ...], doc("First results of loads that were measured once more.")]
    left_out: Annotated[tuple[str, ...], doc("Titles of loads that the limit of open files forbids.")]
