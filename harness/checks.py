"""Validity of a cell: a closed list of rules, each with what was measured, its limit and what to do.

INVALID: the figures may be the client's, not the server's, or describe too few successes to mean anything.
SUSPECT: usable with the stated doubt.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness import design, surroundings, traps
from harness.asked import Asked
from harness.fairness.cache import state, verify
from harness.metrics.arrivals import compare_cell
from harness.metrics.conservation import hint
from harness.metrics.distribution import highest_percentile
from harness.metrics.latency import answered, measured, tpot_ms, ttft_ms
from harness.metrics.quality import form_refused
from harness.metrics.usage import Usage
from harness.model import Answers, Law, Reason, SteadyState, Validity, known
from harness.record import UNKNOWN, Outcome, Records

# Sending later than this shows in the response time. The relative limit lets slow servers be measured
# by slow clients: 5 % of the median TTFT.
MAX_LAG_MS = 5.0
MAX_LAG_SHARE = 0.05
MAX_LOOP_LAG_MS = 5.0
BUSY_SUSPECT, BUSY_INVALID = 0.7, 0.9
MAX_STAMP_UNCERTAINTY_MS = 0.1
# Events that share a read have one stamp, and the gap between them is lost.
MERGED_SUSPECT, MERGED_INVALID = 0.01, 0.1
MAX_FAILED_SHARE = 0.01
MAX_DROPPED_SHARE = 0.01
MIN_SAMPLES = 5  # fewer have no median
RATE_TOLERANCE = 0.05
MAX_LOSS_SHARE = 0.01  # of the requests: a percentile up to p99 does not show fewer
# Figures that contradict each other by so much describe something else than what was measured.
BROKEN_TIMES, BROKEN_SHARE = 3.0, 0.1  # of the tolerance of a law, and of what it expects

_CACHE_HINTS = {
    "cold": "the cache held these prompts before: restart the server or change --seed",
    "warm": "the engine dropped the shared prefixes: its cache is too small, or reuses larger blocks only",
    "primed": "the engine dropped the prompts: its cache is too small, or reuses larger blocks only",
}


def judge(
    records: Records,
    facts: Mapping[str, Any],
    hit_rate: float | None,
    asked: Asked | None = None,
    watched: Usage | None = None,
    steady: SteadyState | None = None,
    answered: Answers | None = None,
    laws: Sequence[Law] = (),
) -> Validity:
    """`facts` is the content of cell.json, `watched` what was measured of machine and engine beside the load,
    `steady` where the steady part lies, `answered` what the answers were worth,
    `laws` those of metrics/conservation.py.
    """
    reasons = [
        *_reasons(records, facts, hit_rate, asked),
        *surroundings.findings(facts, watched),
        *_steady(steady),
        *design.findings(records, facts, steady),
        *_transport(records.requests, facts["client"]),
        *traps.findings(records, facts, answered),
        *_broken(laws),
    ]
    return Validity.of(reasons)


def _reasons(
    records: Records, facts: Mapping[str, Any], hit_rate: float | None, asked: Asked | None
) -> Iterator[Reason]:
    yield from _client(facts["client"])
    yield from _schedule(records, facts)
    yield from _arrivals(records, facts["load"], asked)
    yield from list(_merged(records, facts["client"])) or design.merged(records)
    yield from _requests(records, asked)
    yield from design.too_short(records, facts)
    yield from _engine(facts)
    yield from _lengths(records, facts, asked)
    yield from _cache(records, facts, hit_rate)


def _steady(steady: SteadyState | None) -> Iterator[Reason]:
    if steady is not None and steady.state == "not steady":
        yield Reason(
            "not-steady",
            "SUSPECT",
            str(steady.why),
            "20% over the steady part",
            "ask for more requests; where an open loop only grows slower, the rate is more than is served",
        )


def _broken(laws: Sequence[Law]) -> Iterator[Reason]:
    for law in laws:
        measured, expected, tolerance = law.measured, law.expected, law.tolerance
        if law.holds is not False or measured is None or expected is None or tolerance is None:
            continue
        broken = max(BROKEN_TIMES * tolerance, BROKEN_SHARE * abs(expected))
        yield Reason(
            "does-not-add-up",
            "INVALID" if abs(measured - expected) > broken else "SUSPECT",
            f"{law.law}: {measured:,.6g}",
            f"{expected:,.6g} ± {tolerance:,.2g}",
            hint(law),
        )


def _client(client: Mapping[str, Any]) -> Iterator[Reason]:
    if client["lost_workers"]:
        yield Reason(
            "worker-lost",
            "INVALID",
            f"{client['lost_workers']} worker(s) died",
            "0",
            "their requests are missing; see the notes of this cell",
        )
    busy = client["busy_share"]
    if busy > BUSY_SUSPECT:
        yield Reason(
            "client-busy",
            "INVALID" if busy > BUSY_INVALID else "SUSPECT",
            f"{busy:.0%} of a core",
            f"{BUSY_SUSPECT:.0%} suspect, {BUSY_INVALID:.0%} invalid",
            "use more --workers, a lower load, or a client machine of its own",
        )
    percentile, loop_lag_ms = _tail(client["loop_lag_ms"])
    if loop_lag_ms is not None and loop_lag_ms > MAX_LOOP_LAG_MS:
        yield Reason(
            "loop-lag",
            "SUSPECT",
            f"{percentile} {loop_lag_ms:.1f} ms",
            f"{MAX_LOOP_LAG_MS:g} ms",
            "the load generator was starved of CPU: leave it a core of its own",
        )
    uncertainty_ms = client["stamp_uncertainty_ms"]
    if uncertainty_ms > MAX_STAMP_UNCERTAINTY_MS:
        yield Reason(
            "stamp-uncertainty",
            "SUSPECT",
            f"{uncertainty_ms:.3f} ms",
            f"{MAX_STAMP_UNCERTAINTY_MS:g} ms",
            "the system clock was stepped or the machine stalled",
        )


def _merged(records: Records, client: Mapping[str, Any]) -> Iterator[Reason]:
    """Only where the client looked later than half a gap: servers write bursts too."""
    share, gaps_ms = client["merged_share"], tpot_ms(records.requests)
    percentile, late_ms = _tail(client["loop_lag_ms"])
    if share <= MERGED_SUSPECT or late_ms is None or not len(gaps_ms):
        return
    late_ms += client["tick_ms"]
    limit_ms = float(np.median(gaps_ms)) / 2
    if late_ms > limit_ms:
        yield Reason(
            "merged-events",
            "INVALID" if share > MERGED_INVALID else "SUSPECT",
            f"{share:.0%} of the events read together, up to {late_ms:.1f} ms late ({percentile})",
            f"{MERGED_SUSPECT:.0%} suspect, {MERGED_INVALID:.0%} invalid, if {limit_ms:.1f} ms late or more",
            "gaps between tokens are lost: leave the load generator a core of its own",
        )


def _tail(lag_ms: Mapping[str, Any]) -> tuple[str, float | None]:
    """The percentile that the sample supports: the ones shown are the ones a lag could have distorted."""
    name = f"p{highest_percentile(lag_ms['samples'])}"
    return name, lag_ms[name]


def _schedule(records: Records, facts: Mapping[str, Any]) -> Iterator[Reason]:
    """Of open loops: in a closed one nobody intended a time, and an idle slot is told by `slot-idle`."""
    if facts["load"]["kind"] == "concurrency":
        return
    percentile, lag_ms = _tail(facts["client"]["send_lag_ms"])
    ttft = ttft_ms(records.requests)
    median = float(np.median(ttft)) if len(ttft) else float("inf")
    limit_ms = max(MAX_LAG_MS, MAX_LAG_SHARE * median) if np.isfinite(median) else MAX_LAG_MS
    if lag_ms is not None and lag_ms > limit_ms:
        yield Reason(
            "schedule-lag",
            "INVALID",
            f"{percentile} {lag_ms:.1f} ms",
            f"{limit_ms:.1f} ms",
            "requests left late: lower the load, add --workers, or free the client's core",
        )
    sent = records.requests[records.requests["sent_ns"] != UNKNOWN]
    if len(sent) >= 2 * MIN_SAMPLES:
        # Against the rate of the schedule itself: a Poisson draw rarely has the nominal one.
        asked = _rate(sent["intended_ns"])
        achieved = _rate(sent["sent_ns"])
        if abs(achieved / asked - 1) > RATE_TOLERANCE:
            yield Reason(
                "rate-missed",
                "INVALID",
                f"{achieved:.2f}/s sent",
                f"{asked:.2f}/s ± {RATE_TOLERANCE:.0%}",
                "the client could not keep the schedule: lower the rate or raise max_in_flight",
            )


def _arrivals(records: Records, load: Mapping[str, Any], asked: Asked | None) -> Iterator[Reason]:
    found = compare_cell(records.requests, load, asked)
    if found and found.verdict == "differs" and found.limits and found.achieved:
        names = (known(found.reason) or "").split(", ")
        limits = ", ".join("{} {:.3g} to {:.3g}".format(name, *found.limits[name]) for name in names)
        yield Reason(
            "arrivals-differ",
            "SUSPECT",
            ", ".join(f"{name} {found.achieved[name]:.3g}" for name in names),
            f"{limits} ({found.against})",
            "the server did not see what was asked for: look at lag, drops and the in-flight cap",
        )


def _rate(stamps_ns: np.ndarray) -> float:
    ordered = np.sort(stamps_ns)
    return float((len(ordered) - 1) * 1e9 / max(int(ordered[-1] - ordered[0]), 1))


def _requests(records: Records, asked: Asked | None) -> Iterator[Reason]:
    rows = records.requests[measured(records.requests)]
    ok = int(np.count_nonzero(rows["outcome"] == Outcome.OK))
    dropped = int(np.count_nonzero(rows["outcome"] == Outcome.DROPPED))
    forms = 0 if asked is None else int(np.count_nonzero(form_refused(rows, asked)))
    failed = len(rows) - ok - dropped - forms
    if forms:
        yield Reason(
            "form-refused",
            "SUSPECT",
            f"{forms} of {len(rows)}",
            "0",
            "this engine does not take these schemas: the answers' notes say why; others did more work",
        )
    if failed:
        share = failed / len(rows)
        yield Reason(
            "failed-requests",
            "INVALID" if share > MAX_FAILED_SHARE else "SUSPECT",
            f"{failed} of {len(rows)}",
            f"{MAX_FAILED_SHARE:.0%}",
            "see outcomes and errors in requests.parquet, and the engine's log",
        )
    if dropped > MAX_DROPPED_SHARE * len(rows):
        yield Reason(
            "dropped-requests",
            "INVALID",
            f"{dropped} of {len(rows)}",
            f"{MAX_DROPPED_SHARE:.0%}",
            "the server is past saturation at this rate, or max_in_flight is too low",
        )
    if ok < MIN_SAMPLES:
        yield Reason(
            "too-few-samples",
            "INVALID" if not ok else "SUSPECT",
            f"{ok} answered",
            f"{MIN_SAMPLES}",
            "raise --requests",
        )


def _engine(facts: Mapping[str, Any]) -> Iterator[Reason]:
    if facts.get("engine_exited"):
        yield Reason(
            "engine-died",
            "INVALID",
            str(facts["engine_exited"]),
            "alive to the end",
            f"see {facts.get('engine_log', 'the engine log')}",
        )


def _lengths(records: Records, facts: Mapping[str, Any], asked: Asked | None) -> Iterator[Reason]:
    rows = records.requests[answered(records.requests)]
    same = facts["workload"]["output_tokens"]  # None: lengths differ
    wanted = same if asked is None else asked.numbers["max_tokens"][rows["seq"]]
    known = rows["output_tokens"] != UNKNOWN
    if not facts["workload"]["exact_output"] or wanted is None:
        return
    wrong = int(np.count_nonzero(known & (rows["output_tokens"] != wanted)))
    if wrong:
        length = "of the length asked for" if same is None else f"of {same} tokens"
        yield Reason(
            "output-length",
            "SUSPECT",
            f"{wrong} of {np.count_nonzero(known)} answers not {length}",
            "0",
            "this engine did less or more work than asked: compare per token only",
        )


def _cache(records: Records, facts: Mapping[str, Any], hit_rate: float | None) -> Iterator[Reason]:
    cache = verify(records.requests, facts, hit_rate)
    if cache.holds is False:
        wanted = state(facts)
        yield Reason(f"cache-not-{wanted}", "SUSPECT", cache.measured, cache.limit, _CACHE_HINTS[wanted])


# -- transport: the clock of the stamps, and what TCP did ------------------------------------------------


def _transport(requests: np.ndarray, client: Mapping[str, Any]) -> Iterator[Reason]:
    yield from _clock_step(client)
    rows = requests[measured(requests)]
    yield from _packet_loss(rows)
    yield from _resent(rows)


def _clock_step(client: Mapping[str, Any]) -> Iterator[Reason]:
    step_ms = client.get("clock_step_ms")
    if step_ms is not None and step_ms > MAX_STAMP_UNCERTAINTY_MS:
        yield Reason(
            "clock-step",
            "INVALID",
            f"{step_ms:.3f} ms",
            f"{MAX_STAMP_UNCERTAINTY_MS:g} ms",
            "the system clock was set during the window: let NTP finish before measuring",
        )


def _packet_loss(rows: np.ndarray) -> Iterator[Reason]:
    """Zero where it is not known."""
    retransmits, out_of_order = (np.maximum(rows[name], 0) for name in ("retransmits", "out_of_order"))
    hit = int(np.count_nonzero(retransmits + out_of_order))
    if hit > MAX_LOSS_SHARE * len(rows):
        yield Reason(
            "packet-loss",
            "SUSPECT",
            f"{retransmits.sum()} segments retransmitted, {out_of_order.sum()} out of order, "
            f"in {hit} of {len(rows)} requests ({hit / len(rows):.1%})",
            f"{MAX_LOSS_SHARE:.0%} of the requests",
            "the network lost or reordered packets, so latencies contain its recovery: check the link",
        )


def _resent(rows: np.ndarray) -> Iterator[Reason]:
    resent = int(np.count_nonzero(rows["attempts"] > 1))
    if resent:
        yield Reason(
            "requests-resent",
            "SUSPECT",
            f"{resent} of {len(rows)}",
            "0",
            "the server closed idle connections as requests left: raise its keep-alive timeout",
        )
