"""Records and facts of one cell to the object that summary.json has of it."""

from collections.abc import Callable

from msgspec import structs

from harness import conditions
from harness.metrics import cache_hits, conservation, pace, quality, reported, usage
from harness.metrics.families import figures_of
from harness.metrics.latency import by_arrival
from harness.metrics.view import CellView, Figures
from harness.model import CellFacts, CellResult
from harness.records.layout import Records
from harness.records.request_table import RequestTable
from harness.records.series import Telemetry
from harness.validity import Evidence, judge

NO_TELEMETRY = Telemetry()


def view_of(
    records: Records, facts: CellFacts, requested: RequestTable | None, telemetry: Telemetry = NO_TELEMETRY
) -> CellView:
    return CellView(by_arrival(records), facts, requested, telemetry)


def about(cell: CellView) -> Figures:
    """What a cell is, the verdict on its figures, and the conditions under which they hold."""
    facts, (hit_rate, _) = cell.of(cache_hits.measured_facts), cell.of(cache_hits.hit_rate_of)
    return Figures(
        load=facts.load,
        started_unix_ns=facts.t0_unix_ns,
        workload_sha256=facts.workload.sha256,
        validity=judge(
            Evidence(
                cell,
                facts,
                hit_rate,
                cell.requested,
                watched=cell.of(usage.compute),
                steady=cell.of(pace.compute).steady_state,
                state=cell.of(pace.compute).state,
                answers=cell.of(quality.compute).answers,
                laws=cell.of(conservation.compute).conservation,
            )
        ),
        probe=facts.probe,
        start=facts.start,
        client=facts.client,
        imported=facts.imported,
        conditions=conditions.conditions(cell, facts, hit_rate, cell.requested),
    )


def summarise_view(cell: CellView) -> CellResult:
    figures, nulls = figures_of(cell)
    # Types: tests/unit/metrics/test_families.py holds the figures of each family to those of CellResult.
    fill: Callable[..., CellResult] = CellResult
    identity = structs.asdict(cell.facts.identity)
    result = fill(**identity, **about(cell).by_key, **figures, null_reasons=nulls)
    result = reported.with_reported(result, cell.facts.imported)
    return structs.replace(result, null_reasons={path: str(why) for path, why in result.null_reasons.items()})
