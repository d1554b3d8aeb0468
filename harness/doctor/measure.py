"""One load against the scripted server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harness.apis import ApiName
from harness.cluster.placement import Cluster
from harness.doctor.compare import find_errors, true_records
from harness.doctor.cores import Usage, pin
from harness.doctor.loads import Load, whole
from harness.errors import SetupError
from harness.load import run_load
from harness.load.job import LoadResult
from harness.metrics.arrivals import dispersion
from harness.metrics.throughput import rates
from harness.metrics.view import RequestView
from harness.metrics.window import measured_window, work_shares
from harness.mockserver import MockServer, running
from harness.model import (
    CellFacts,
    CellRequest,
    CellWorkload,
    Dispersions,
    Identity,
    LoadNode,
    MeasuredLoad,
    Minimum,
    OnNode,
    ScriptedServer,
)
from harness.model import Load as CellLoad
from harness.records.layout import Records
from harness.validity import Evidence, judge


def measure(
    load: Load, core: int | None, cluster: Cluster | None = None, api: ApiName = "chat"
) -> MeasuredLoad:
    """`core` is the server's own. Raises SetupError if the server does not start, or ends before it is
    asked.
    """
    address = {} if cluster is None else {"host": cluster.here}
    timing = {
        "ttft_ms": load.ttft_ms(api),
        "gap_ms": load.gap_ms,
        "chars_per_token": 1,
        "no_prefix_cache": True,
    }
    with running(**timing, **address) as server:
        pin(server.pid, core)
        job, worker_pool = load.job(server.url, api), None
        if cluster is not None:
            job = replace(job, workers=cluster.asked.workers)
            worker_pool = cluster.worker_pool(job)
        before = Usage.now(server.pid)
        result = run_load(job, worker_pool=worker_pool)
        after = Usage.now(server.pid)
        truth = _ask(server)
    nodes = worker_pool.nodes() if worker_pool is not None else ()
    records, facts = result.records, _cell_facts(load, result, nodes, api)
    ledger = truth["records"]
    errors = find_errors(records, ledger, result.t0_monotonic_ns)
    validity = judge(Evidence(RequestView(records), facts, ledger_agrees=errors is not None))
    counted = len(records.requests) if whole(api) else np.maximum(records.requests["text_events"], 0).sum()
    return MeasuredLoad(
        load=load,
        verdict=validity.verdict,
        reasons=validity.reasons,
        errors=errors,
        tokens_per_s=_per_s(records, load, "requests_per_s" if whole(api) else "output_tokens_per_s"),
        cpu_us_per_token=(result.client.cpu_s or 0.0) * 1e6 / max(int(counted), 1),
        client=result.client,
        server=_server(truth["statistics"]["schedule_error_us"], after.server_cores_since(before)),
        arrivals=_arrivals(records, ledger, result.t0_monotonic_ns)
        if errors and load.kind == "rate"
        else None,
        other_cores=after.other_cores_since(before),
        title=load.title,
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


def _ask(server: MockServer) -> dict[str, Any]:
    try:
        return server.truth()
    except OSError as error:
        raise SetupError(
            f"stopped answering: {error}", where="bench truth", hint="was it killed, or out of memory?"
        ) from error


def _cell_facts(load: Load, result: LoadResult, nodes: tuple[LoadNode, ...], api: ApiName) -> CellFacts:
    """The facts as of a run's cell against the scripted server."""
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
        request=CellRequest(api=api),
        planned=load.requests,
        minimum=Minimum(seconds=0, answers=1),
        unsent=result.unsent,
        t0_unix_ns=result.t0_unix_ns,
        server_counters=None,
        client=result.client,
        nodes=nodes,
        engine_exited=None,
    )


def _per_s(records: Records, load: Load, rate: str) -> float:
    closed_loop = load.kind == "concurrency"
    window = measured_window(records.requests, load.value if closed_loop else None)
    if window is None:
        return 0.0
    shares = work_shares(records.requests, records.events, window, closed_loop=closed_loop)
    return rates(records, window, shares)[rate] or 0.0


def _server(late_us: Mapping[str, float], busy_share: float | None) -> ScriptedServer:
    late_ms = {name: value / 1e3 for name, value in late_us.items()}
    return ScriptedServer(late_ms.get("p50"), late_ms.get("p99"), late_ms.get("max"), busy_share)


def _arrivals(records: Records, ledger: list[dict[str, object]], t0_ns: int) -> Dispersions:
    received = np.array([record["received_ns"] for record in ledger], np.int64) - t0_ns
    sent, arrived = np.sort(records.requests["intended_ns"]), np.sort(received)
    return Dispersions(dispersion(sent, sent), dispersion(arrived, arrived))
