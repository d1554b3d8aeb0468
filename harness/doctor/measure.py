"""One load against the scripted server, and what came of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.cluster.placement import Cluster
from harness.doctor.compare import Errors, find_errors, true_records
from harness.doctor.cores import Usage, pin
from harness.doctor.loads import TTFT_MS, Load
from harness.errors import SetupError
from harness.facts import client_stats
from harness.load import run_load
from harness.load.job import LoadResult
from harness.metrics.arrivals import Statistics
from harness.metrics.throughput import measured_window, rates, work_shares
from harness.model import CellFacts, CellWorkload, ClientStats, Identity, LoadNode, Minimum, as_json
from harness.model import Load as CellLoad
from harness.record import Records
from harness.truth import TruthServer, running
from harness.validity import Evidence, judge


@dataclass(frozen=True, slots=True)
class Server:
    """How the scripted server fared: its lateness is in its ledger, and so not in the client's errors."""

    late_p50_ms: float | None  # written - due
    late_p99_ms: float | None
    late_max_ms: float | None
    busy_share: float | None  # of a core


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Dispersion of the open loop's arrivals, as drawn and as the server received them."""

    drawn: float
    received: float


@dataclass(frozen=True, slots=True)
class OnNode:
    """One load node: how far its sends lie, on the common clock, before the server received them."""

    node: LoadNode
    requests: int
    before_ms: tuple[float, float, float] | None  # smallest, median, largest


@dataclass(frozen=True, slots=True)
class Measured:
    load: Load
    verdict: str
    reasons: list[dict[str, str]]
    errors: Errors | None
    tokens_per_s: float
    cpu_us_per_token: float  # of the client's workers, inside the window
    client: ClientStats
    server: Server
    arrivals: Arrivals | None
    other_cores: float | None  # kept busy by other work meanwhile
    nodes: tuple[OnNode, ...] = ()  # of a cluster

    def exact(self, tolerance_ms: float) -> bool:
        return self.verdict == "VALID" and self.errors is not None and self.errors.p99_ms <= tolerance_ms

    def on_time(self, tolerance_ms: float) -> bool:
        return self.verdict == "VALID" and bool(self.send_lag_p99_ms <= tolerance_ms)

    @property
    def send_lag_p99_ms(self) -> float:
        lag_ms = self.client.send_lag_ms.p99
        return float("inf") if lag_ms is None else lag_ms


def measure(load: Load, core: int | None, cluster: Cluster | None = None) -> Measured:
    """`core` is the server's own. SetupError when the server does not start, or ends before it is asked."""
    place = {} if cluster is None else {"host": cluster.here}
    timing = {"ttft_ms": TTFT_MS, "gap_ms": load.gap_ms, "chars_per_token": 1, "no_prefix_cache": True}
    with running(**timing, **place) as server:
        pin(server.pid, core)
        job, crew = load.job(server.url), None
        if cluster is not None:
            job = replace(job, workers=cluster.asked.workers)
            crew = cluster.crew(job)
        before = Usage.now(server.pid)
        result = run_load(job, crew=crew)
        after = Usage.now(server.pid)
        truth = _ask(server)
    nodes = crew.nodes() if crew is not None else ()
    records, facts = result.records, _cell_facts(load, result, nodes)
    ledger = truth["records"]
    errors = find_errors(records, ledger, result.t0_monotonic_ns)
    validity = judge(Evidence(records, facts, ledger_agrees=errors is not None))
    tokens = int(np.maximum(records.requests["text_events"], 0).sum())
    return Measured(
        load=load,
        verdict=validity.verdict,
        reasons=as_json(validity.reasons),
        errors=errors,
        tokens_per_s=_tokens_per_s(records, load),
        cpu_us_per_token=result.client.cpu_s * 1e6 / max(tokens, 1),
        client=facts.client,
        server=_server(truth["statistics"], after.server_cores_since(before)),
        arrivals=_arrivals(records, ledger, result.t0_monotonic_ns)
        if errors and load.kind == "rate"
        else None,
        other_cores=after.other_cores_since(before),
        nodes=tuple(_of_node(node, records, ledger, result.t0_monotonic_ns) for node in nodes),
    )


def _of_node(node: LoadNode, records: Records, ledger: list[dict[str, Any]], t0_ns: int) -> OnNode:
    """A wrong offset puts sends after their receipt, or long before it."""
    mine = np.isin(records.requests["worker"], node.workers)
    true = true_records(records, ledger, t0_ns)
    before_ms = None
    if true is not None and mine.any():
        way = (true.requests["sent_ns"] - records.requests["sent_ns"])[mine] / 1e6
        before_ms = (float(way.min()), float(np.median(way)), float(way.max()))
    return OnNode(node, int(np.count_nonzero(mine)), before_ms)


def _ask(server: TruthServer) -> dict[str, Any]:
    try:
        return server.truth()
    except OSError as error:
        raise SetupError(
            f"stopped answering: {error}", where="bench truth", hint="was it killed, or out of memory?"
        ) from error


def _cell_facts(load: Load, result: LoadResult, nodes: tuple[LoadNode, ...]) -> CellFacts:
    """As of a run's cell against the scripted server."""
    open_loop = load.kind == "rate"
    return CellFacts(
        cell=load.title,
        identity=Identity(
            cell=load.title,
            backend="truth",
            variant=None,
            label="truth",
            title="scripted server",
            simulated=True,
            track=None,
            quantisation=None,
            engine_version=None,
            launch="simulate",
            repeat=0,
        ),
        load=CellLoad(
            kind=load.kind,
            value=load.value,
            arrival="poisson" if open_loop else None,
            start_declared="together",  # equal answers stay in step, and exactness is what is asked
        ),
        workload=CellWorkload(
            sha256="",
            exact_lengths=None,
            output_tokens=load.tokens,
            exact_output=True,
            content_tokens_mean=0.0,
            ideal_hit_rate=0.0,
            cold_cache=False,
        ),
        planned=load.requests,
        minimum=Minimum(seconds=0, answers=1),
        unsent=result.unsent,
        t0_unix_ns=result.t0_unix_ns,
        server_counters=None,
        client=client_stats(result.client),
        nodes=nodes,
        engine_exited=None,
    )


def _tokens_per_s(records: Records, load: Load) -> float:
    closed_loop = load.kind == "concurrency"
    window = measured_window(records.requests, load.value if closed_loop else None)
    if window is None:
        return 0.0
    shares = work_shares(records.requests, records.events, window, closed_loop=closed_loop)
    return rates(records, window, shares)["output_tokens_per_s"] or 0.0


def _server(statistics: dict[str, Any], busy_share: float | None) -> Server:
    late_ms = {name: value / 1e3 for name, value in statistics["schedule_error_us"].items()}
    return Server(late_ms.get("p50"), late_ms.get("p99"), late_ms.get("max"), busy_share)


def _arrivals(records: Records, ledger: list[dict[str, Any]], t0_ns: int) -> Arrivals:
    received = np.array([record["received_ns"] for record in ledger], np.int64) - t0_ns
    drawn = records.requests["intended_ns"]
    return Arrivals(*(Statistics.of(np.sort(times)).dispersion for times in (drawn, received)))
