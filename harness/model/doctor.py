"""doctor.json: how exact the load generator is on this machine."""

from typing import Annotated, Literal

from harness.model.cell_facts import LoadNode
from harness.model.client import ClientStats
from harness.model.manifest import HostFacts
from harness.model.record import Record, doc
from harness.model.validity import Reason, Verdict


class ErrorSpread(Record, frozen=True):
    """Quantiles of absolute errors, in ms."""

    p50: Annotated[float, doc("Median, ms.")]
    p99: Annotated[float, doc("99th percentile, ms.")]
    max: Annotated[float, doc("Largest, ms.")]


class ClientErrors(Record, frozen=True):
    """Errors of the client: what it measured less what the server's ledger has, in ms."""

    ttft_ms: Annotated[ErrorSpread | None, doc("Of the time to the first token; null: answers come whole.")]
    itl_ms: Annotated[ErrorSpread | None, doc("Of the gaps between tokens; null: answers come whole.")]
    e2e_ms: Annotated[ErrorSpread, doc("Of the time to the last token, or to the whole answer.")]

    @property
    def p99_ms(self) -> float:
        """The larger p99 of TTFT and ITL, or that of E2E if answers come whole: exactness is judged by it."""
        parts = [errors.p99 for errors in (self.ttft_ms, self.itl_ms) if errors is not None]
        return max(parts, default=self.e2e_ms.p99)


class ScriptedServer(Record, frozen=True):
    """How late the scripted server wrote, and its CPU use.

    Its ledger has when it wrote, so its lateness is no part of the client's errors.
    """

    late_p50_ms: Annotated[float | None, doc("Median of written less due, ms.")]
    late_p99_ms: Annotated[float | None, doc("99th percentile, ms.")]
    late_max_ms: Annotated[float | None, doc("Largest, ms.")]
    busy_share: Annotated[float | None, doc("Of a core.")]


class Dispersions(Record, frozen=True):
    """Dispersions of the arrivals of an open loop: variance over mean of counts in bins; 1 is Poisson."""

    drawn: Annotated[float, doc("As scheduled.")]
    received: Annotated[float, doc("As the server received them.")]


class TriedLoad(Record, frozen=True):
    """A closed loop of `value` streams, or Poisson arrivals at `value` per second."""

    kind: Annotated[Literal["concurrency", "rate"], doc("Closed loop, or open loop.")]
    value: Annotated[int, doc("Streams, or requests per second.")]
    gap_ms: Annotated[float, doc("Between the tokens of an answer.")]
    tokens: Annotated[int, doc("Of an answer.")]
    requests: Annotated[int, doc("No fewer than a p99 needs.")]

    @property
    def title(self) -> str:
        if self.kind == "concurrency":
            return f"{self.value:,} streams, gap {self.gap_ms:g} ms"
        return f"open loop, {self.value:,}/s"


class OnNode(Record, frozen=True):
    """A load node of a cluster, and how its sends compare with the server's ledger."""

    node: Annotated[LoadNode, doc("The node and its clock.")]
    requests: Annotated[int, doc("That it sent.")]
    before_ms: Annotated[
        tuple[float, float, float] | None,
        doc("How far its sends lie before they were received, ms: least, median, most; null: none was."),
    ]


class MeasuredLoad(Record, frozen=True, kw_only=True):
    """Verdict, errors and costs of the client at one load."""

    load: Annotated[TriedLoad, doc("What was asked for.")]
    verdict: Annotated[Verdict, doc("As of the cell of a run.")]
    reasons: Annotated[tuple[Reason, ...], doc("Every rule that was broken.")]
    errors: Annotated[
        ClientErrors | None, doc("Null where client and server do not hold the same requests and events.")
    ]
    tokens_per_s: Annotated[
        float, doc("Inside the window; answers per second of an API whose answers come whole.")
    ]
    cpu_us_per_token: Annotated[
        float, doc("Of the client's workers, inside the window; per answer that comes whole.")
    ]
    client: Annotated[ClientStats, doc("How the load generator fared.")]
    server: Annotated[ScriptedServer, doc("How the scripted server fared.")]
    arrivals: Annotated[Dispersions | None, doc("Null for a closed loop, and without errors to tell.")]
    other_cores: Annotated[float | None, doc("Kept busy by other work meanwhile.")]
    title: Annotated[str, doc("Of the load, for people.")]
    nodes: Annotated[tuple[OnNode, ...], doc("Of a cluster that sent the load.")] = ()

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

    tolerance_ms: Annotated[float, doc("Of the errors' p99.")]
    streams: Annotated[int, doc("Of a closed loop.")]
    tokens_per_s: Annotated[float, doc("The most that was received so exactly; answers that come whole.")]


class Exactness(Record, frozen=True, kw_only=True):
    """The conclusion from all loads: how exact the client is here, and up to which load."""

    sentence: Annotated[str, doc("In words.")]
    reaches: Annotated[tuple[Reach, ...], doc("Tolerances rising, each going further than the one before.")]
    exact_streams: Annotated[int, doc("To 1 ms; 0: not even at the lightest load.")]
    on_time_per_s: Annotated[int, doc("Highest open-loop rate whose requests left within 1 ms.")]
    tried_streams: Annotated[int, doc("The most.")]
    tried_per_s: Annotated[int, doc("The highest rate.")]
    streams_per_worker: Annotated[int, doc("That keep one process at half a core or so; 0: not known.")]
    arrivals_per_worker: Annotated[int, doc("Per second; 0: not known.")]
    limits: Annotated[tuple[str, ...], doc("What keeps the client from being exact, in words.")]
    hints: Annotated[tuple[str, ...], doc("What to change.")]
    fit_to_measure: Annotated[bool, doc("Exact at so many streams as a run should be able to use.")]


class ClockFacts(Record, frozen=True, kw_only=True):
    """The clock and the receive stamps that times come from, and their precision."""

    source: Annotated[str | None, doc("Of the kernel's monotonic clock.")]
    resolution_ns: Annotated[float, doc("Of that clock.")]
    kernel_receive_stamps: Annotated[bool, doc("The kernel stamps what arrives.")]
    stamp_uncertainty_ns: Annotated[int, doc("Of such a stamp.")]


class LimitFacts(Record, frozen=True, kw_only=True):
    """Limits on the number of connections. Null: no limit, or not known."""

    file_descriptors_soft: Annotated[int, doc("Of a process, as it starts.")]
    file_descriptors_hard: Annotated[int | None, doc("To which it can be raised.")]
    ephemeral_ports: Annotated[tuple[int, int] | None, doc("First and last.")]
    connections_to_one_server: Annotated[int | None, doc("That both limits allow.")]


class DoctorResult(Record, frozen=True, kw_only=True):
    """How exact the load generator is on this machine, and what limits it."""

    version: Annotated[str, doc("Of the harness.")]
    date: Annotated[str, doc("ISO 8601.")]
    api: Annotated[str, doc("Of the requests: chat, completions, responses or messages.")] = "chat"
    verdict: Annotated[Exactness, doc("What the measurements come to.")]
    host: Annotated[HostFacts, doc("CPU, memory, kernel.")]
    clock: Annotated[ClockFacts, doc("How well moments are known.")]
    limits: Annotated[LimitFacts, doc("How many connections there can be.")]
    server_core: Annotated[int | None, doc("That the scripted server had for itself; null: none.")]
    loads: Annotated[tuple[MeasuredLoad, ...], doc("What was measured, lightest first.")]
    repeated: Annotated[
        tuple[MeasuredLoad, ...], doc("What came of a load before it was measured once more.")
    ]
    left_out: Annotated[tuple[str, ...], doc("Titles of loads that the limit of open files forbids.")]
