"""Records and facts of cells to the objects of summary.json. Recomputable from a copied run folder."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from msgspec.structs import replace
from numpy.typing import NDArray

from harness import agreement, claims, comparability
from harness.compare import compare, rules_of
from harness.compare.capacity import capacity
from harness.compare.comparison import rows_of
from harness.compare.sequential import Stand, stand
from harness.errors import SpecError
from harness.metrics import (
    arrivals,
    bundling,
    cache,
    classes,
    conservation,
    counts,
    in_flight,
    latency,
    lengths,
    prefix,
    quality,
    reported,
    sample_size,
    throughput,
    usage,
)
from harness.metrics.backlog import backlog
from harness.metrics.distribution import describe
from harness.metrics.goodput import goodput
from harness.metrics.lockstep import synchrony
from harness.metrics.pooled import Samples, samples
from harness.metrics.replicas import replicas
from harness.metrics.scaling import scaling
from harness.metrics.slots import slot_time
from harness.metrics.standstill import engine_stall, standstill
from harness.metrics.state import cell_state
from harness.metrics.steady import steady_state_of
from harness.model import (
    METRICS,
    WITHOUT_TEXT,
    Agreement,
    CellFacts,
    CellResult,
    Identity,
    LatencyStats,
    Manifest,
    Prices,
    RunWarning,
    Stopping,
    Summary,
    Synchrony,
    WorkloadCard,
)
from harness.records.layout import Phase, Records
from harness.records.request_table import RequestTable
from harness.records.series import Telemetry
from harness.store import RunFolder
from harness.validity import Evidence, judge, notices
from harness.validity.stalls import engine_stalls
from harness.validity.steady import ramp_warnings
from harness.validity.telemetry import gaps

NO_TELEMETRY = Telemetry()


class Beside(NamedTuple):
    """What a run folder holds apart from its cells; None where it was not made.

    workload_card: by load point what its requests are. agreement: how far the backends' answers were right,
    alike and unharmed by load.
    """

    workload_card: dict[str, WorkloadCard] | None = None
    agreement: Agreement | None = None


def summarise_cell(
    records: Records,
    facts: CellFacts,
    requested: RequestTable | None,
    telemetry: Telemetry = NO_TELEMETRY,
) -> CellResult:
    records = latency.by_arrival(records)
    requests, load = records.requests, facts.load
    timed = reported.timed(records, facts.imported)
    steady, queue = steady_state_of(timed, facts, requested), backlog(timed.requests, load)
    hit_rate, hit_source = cache.hit_rate(requests, facts.server_counters)
    facts = replace(facts, workload=replace(facts.workload, **_reuse(requests, requested, hit_source)))
    nulls: dict[str, str] = {}

    def statistics(name: str, values: NDArray[np.float64]) -> LatencyStats:
        described, reasons = describe(values, independent=METRICS[name].per_request)
        none = latency.why_no_gaps(requests) if name in ("tpot_ms", "itl_ms") and not len(values) else ""
        nulls.update({f"{name}.{key}": none or reason for key, reason in reasons.items()})
        return described

    still = standstill(timed, facts)
    if still is None:
        nulls["standstill"] = "this version of the harness did not record it, or no request was sent"
    if hit_rate is None:
        nulls["prefix_cache_hit_rate"] = cache.why_unknown(requests)
    count = counts.requests(requests, facts)
    if count.resent is None:
        nulls["requests.resent"] = "this version of the harness did not record attempts"
    slots = load.slots
    sessions = requested.sessions()[requests["seq"]] if requested is not None else None
    window = throughput.measured_window(timed.requests, slots, facts.client.spread_over_ns, sessions)
    shares = np.zeros(len(requests))
    rates: dict[str, float | None] = dict.fromkeys(throughput.RATES)
    if window:
        shares = throughput.work_shares(requests, records.events, window, closed_loop=slots is not None)
        rates = throughput.rates(records, window, shares, requested.items() if requested else None)
    for name, value in rates.items():
        if value is None:
            nulls[name] = "no answer to count" if window is None else "the server reports no token counts"
    nulls |= {name: throughput.why_not_apart(requests) for name in throughput.OF_REASONING if name in nulls}
    if not latency.reasons(requests):
        nulls |= dict.fromkeys(("ttft_reasoning_ms", "ttft_answer_ms"), "no answer has reasoning text")
    without = _without(facts.request.api)
    if not without:
        nulls["items_per_s"] = "answers are text, not vectors or scores"
    good = goodput(requests, facts.slo or {}, window, shares)
    if good.requests_per_s is None:
        nulls["goodput_requests_per_s"] = (
            "a latency with a limit is not known" if facts.slo else "the scenario sets no limits ([slo])"
        )
    told = conservation.Cell(records, facts, window, rates, shares, count, telemetry) if window else None
    laws = tuple(conservation.laws(told)) if told else ()
    course, unknown = _course(records, window, slots)
    nulls |= unknown
    watched, unwatched = usage.describe(telemetry, facts, rates, window, good.output_tokens_per_s)
    nulls |= unwatched
    state = cell_state(timed.requests, load)
    if state.state is None:
        nulls["state"] = state.why
    answered = quality.quality(records, requested, unsaid=facts.request.unsupported)
    # By metric: a latency has statistics, a rate a number.
    figures: dict[str, Any] = {
        **{metric: statistics(metric, values) for metric, values in latency.latencies(records).items()},
        **rates,
        **{name: statistics(name, np.zeros(0)) for name in without if METRICS[name].family == "latency"},
        **{name: None for name in without if METRICS[name].family == "rate"},
    }
    nulls |= _nothing_of_text(nulls, without, facts.request.api)
    cell = CellResult(
        **{name: getattr(facts.identity, name) for name in Identity.__struct_fields__},
        load=load,
        started_unix_ns=facts.t0_unix_ns,
        workload_sha256=facts.workload.sha256,
        validity=judge(
            Evidence(records, facts, hit_rate, requested, watched, steady, answered.answers, laws)
        ),
        requests=count,
        arrivals=arrivals.compare_cell(timed.requests, load, requested),
        **figures,
        goodput_requests_per_s=good.requests_per_s,
        **course._asdict(),
        conservation=laws,
        slo=good.slo,
        state=state.state,
        state_why=state.why,
        steady_state=steady,
        standstill=still,
        engine_stall=engine_stall(timed, facts),
        backlog=queue,
        probe=facts.probe,
        window_start_s=window.start_ns / 1e9 if window else None,
        window_s=window.seconds if window else None,
        makespan_s=throughput.makespan_s(timed.requests),
        window_kind=window.kind if window else None,
        **_loop(timed.requests, facts, nulls)._asdict(),
        sample=sample_size.amount(timed.requests, facts.minimum).sample,
        output_tokens=counts.output_tokens(records),
        events_per_arrival=bundling.merged_gaps(records)[1],
        prefix_cache_hit_rate=hit_rate,
        prefix_cache_source=hit_source,
        prefix_cache_ideal=facts.workload.ideal_hit_rate,
        prefix_cache_ideal_by_block=None if requested is None else prefix.ideals(requests, requested),
        **answered._asdict(),
        start=facts.start,
        template_tokens=lengths.template_tokens(requests, requested),
        by_kind=classes.by_kind(records, requested),
        by_turn=classes.by_turn(records, requested),
        replicas=replicas(requests, facts, window, shares),
        **watched._asdict(),
        client=facts.client,
        conditions=comparability.conditions(records, facts, hit_rate, requested),
        null_reasons=nulls,
    )
    return reported.as_told(cell, facts.imported)


def _without(api: str) -> tuple[str, ...]:
    """Metrics that its answers cannot have."""
    return tuple(metric.name for metric in METRICS.values() if metric.of_text and api in WITHOUT_TEXT)


def _nothing_of_text(nulls: Mapping[str, str], without: Sequence[str], api: str) -> dict[str, str]:
    """In the place of reasons that look like a fault of the server."""
    said = f"answers of {api} come whole: there is no first token, and none after it"
    return {path: said for path in (*nulls, *without) if path.partition(".")[0] in without}


class _Course(NamedTuple):
    """What was in flight over the window and, of an open loop, what was offered."""

    in_flight_mean: float | None = None
    time_in_system_ms_mean: float | None = None
    effective_concurrency: float | None = None
    offered_per_s: float | None = None
    backlog_growth_per_s: float | None = None


def _course(
    records: Records, window: throughput.Window | None, slots: int | None
) -> tuple[_Course, dict[str, str]]:
    """With why of each null."""
    if window is None:
        return _Course(), dict.fromkeys(_Course._fields, "no answer to count")
    requests = records.requests
    measured = requests[requests["phase"] == Phase.MEASURE]
    in_flight_mean = in_flight.mean(requests, window.start_ns, window.end_ns)
    in_system_ms = float(in_flight.times_in_system_ns(measured).mean()) / 1e6
    if slots is not None:
        no_offer = "a closed loop offers what is served"
        closed = _Course(in_flight_mean, in_system_ms, effective_concurrency=in_flight_mean)
        return closed, dict.fromkeys(("offered_per_s", "backlog_growth_per_s"), no_offer)
    offered = window.per_second(conservation.arrivals(requests, window))
    growth = window.per_second(conservation.backlog_growth(records, window))
    course = _Course(in_flight_mean, in_system_ms, None, offered, growth)
    return course, {"effective_concurrency": "an open loop has no slots"}


def _reuse(
    requests: NDArray[np.void], requested: RequestTable | None, hit_source: str | None
) -> dict[str, float]:
    """What cell.json says of the whole workload, of the requests that the hit rate is about."""
    measured = requests["seq"][latency.answered(requests)]
    if requested is None or not len(measured):
        return {}
    counted = slice(None) if hit_source == "counters" else measured
    shared, content = prefix.reusable(requested)
    return {
        "content_tokens_mean": float(content[measured].mean()),
        "ideal_hit_rate": prefix.share(shared, content, counted),
        "shared_share": prefix.ideal_hit_rate(requested, counted, warm=True),
    }


class _Slots(NamedTuple):
    slot_idle_ms: LatencyStats | None
    slot_idle_share: float | None
    synchrony: Synchrony | None


def _loop(requests: NDArray[np.void], facts: CellFacts, nulls: dict[str, str]) -> _Slots:
    """How the slots of a closed loop fared; null, with the reason in `null_reasons`, for an open one."""
    load = facts.load
    slots = slot_time(requests, load)
    together, why = synchrony(requests, load)
    idle, reasons = describe(slots.idle_ms) if slots else (None, {})
    nulls.update({f"slot_idle_ms.{key}": reason for key, reason in reasons.items()})
    if slots is None:
        no_slots = "an open loop has no slots" if load.slots is None else "no request was sent"
        nulls.update(dict.fromkeys(("slot_idle_ms", "slot_idle_share"), no_slots))
    if together is None:
        nulls["synchrony"] = why
    return _Slots(idle, slots.share if slots else None, together)


def folder_samples(folder: RunFolder) -> Mapping[str, Samples]:
    """What percentiles over several runs are made of, by cell."""
    return {name: samples(folder.read_cell(name)[0]) for name in folder.cells()}


def summarise_run(
    manifest: Manifest,
    cells: Sequence[CellResult],
    pooled: Mapping[str, Samples],
    others: Beside | None = None,
) -> Summary:
    """`pooled`: the samples of every cell by its name. `others`: what `beside` finds in the folder."""
    others = others or Beside()
    cells = comparability.with_manifest(cells, manifest, others.agreement)
    invalid, state = any(cell.invalid for cell in cells), manifest.state
    summary = Summary(
        run=manifest.run,
        state="invalid" if state == "complete" and invalid else state,
        scenario=manifest.scenario.scenario.name,
        purpose=manifest.scenario.scenario.purpose,
        model=manifest.model,
        workload_sha256=manifest.workload_sha256,
        simulated=any(cell.simulated for cell in cells),
        cells=cells,
        scaling=scaling(cells),
        unequal=comparability.unequal(cells),
        **compare(cells, rules_of(manifest), pooled)._asdict(),
        stopping=_stopping(manifest),
        capacity=capacity(cells, manifest.repeats) if manifest.find_capacity else None,
        workload_card=others.workload_card,
        agreement=others.agreement,
        warnings=(*_warnings(manifest, cells), *agreement.warnings(others.agreement)),
        claims=(),
    )
    return replace(summary, claims=tuple(claims.judge(summary, manifest, claims.load_book())))


def standing(
    manifest: Manifest,
    cells: Sequence[CellResult],
    pooled: Mapping[str, Samples],
    others: Beside,
) -> Stand:
    """What is decided after the last look that the manifest says was taken; arguments of `summarise_run`."""
    cells = comparability.with_manifest(cells, manifest, others.agreement)
    return stand(rows_of(cells, pooled), rules_of(manifest))


def _stopping(manifest: Manifest) -> Stopping | None:
    """Why the run ended where it did; None where the number of repeats was fixed."""
    if manifest.stopping is None:
        return None
    alpha = rules_of(manifest).look_alpha
    return Stopping(**structs.asdict(manifest.stopping), rule="group-sequential", alpha_per_look=alpha)


def _warnings(manifest: Manifest, cells: Sequence[CellResult]) -> list[RunWarning]:
    warnings = list(manifest.warnings)
    tracks = {cell.label: cell.quantisation for cell in cells if cell.quantisation}
    if len(set(tracks.values())) > 1:
        weights = ", ".join(f"{label} {track}" for label, track in tracks.items())
        warnings.append(notices.DIFFERENT_TRACKS.warning(f"different weights: {weights}"))
    repeats = {cell.repeat for cell in cells}
    if len({cell.label for cell in cells}) > 1 and len(repeats) < 2:
        warnings.append(
            notices.ONE_REPEAT.warning(
                "one run per backend: differences between runs of the same backend are unknown"
            )
        )
    return [*warnings, *ramp_warnings(cells), *engine_stalls(cells), *gaps(cells)]


def beside(folder: RunFolder, manifest: Manifest) -> Beside:
    questions, requested = folder.read_answers()
    in_order = {label: requested[label] for label in manifest.backends if label in requested}
    in_order |= {label: one for label, one in requested.items() if one.values and one.values.library}
    return Beside(
        folder.read_cards().cards if folder.has("workload.json") else None,
        agreement.compare(agreement.from_json(questions), in_order) if questions else None,
    )


def summarise_folder(folder: RunFolder, prices: Prices | Mapping[str, Prices] | None = None) -> Summary:
    """From the folder alone; a damaged cell is a warning. Raises SpecError for a folder that is not a run.

    `prices`: instead of those the run was given, of all cells or by the name of each.
    """
    cells, unreadable = [], []
    pooled: dict[str, Samples] = {}
    for name in folder.cells():
        try:
            records, facts = folder.read_cell(name)
            given = prices.get(name) if isinstance(prices, Mapping) else prices
            facts = replace(facts, prices=given or facts.prices)
            requested, telemetry = folder.read_requested(facts), folder.read_telemetry(name)
            cells.append(summarise_cell(records, facts, requested, telemetry))
            pooled[name] = samples(records)
        except SpecError as error:
            unreadable.append(notices.of_cell(error).warning(str(error)))
    manifest = folder.read_manifest()
    summary = summarise_run(manifest, cells, pooled, beside(folder, manifest))
    return replace(summary, warnings=(*summary.warnings, *unreadable))
