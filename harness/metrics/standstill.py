"""Time in which the load generator, the whole machine or the engine stood still inside a cell.

What the load generator did not see pass is in every figure: rates count it, latencies contain it. A pause of
the engine is the engine's, and belongs to the engine.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.metrics import in_flight, latency
from harness.metrics.view import CellView, Figures, Mask, RequestView, Rows
from harness.model import UNSET, CellFacts, EngineStall, Stall, Standstill, known
from harness.records.layout import CLIENT_ENDED, UNKNOWN, Outcome, Records

HIT_SHARE = 0.1  # of an answer's own time, from which on a stall shows in its latency
# Processes that go on together do not all run at once: the server may write before the client looks.
_WAKING_NS = 50_000_000
_BIN_NS = 50_000_000
_MOST_NS = 1e18
LEAST_SILENCE_MS, SILENCE_SHARE, SILENCE_TTFTS = 500.0, 0.02, 3.0

Times = NDArray[np.int64]


class _Span(NamedTuple):
    """Stalls that follow one another, clipped to the measured part; ns from t0."""

    start: Times
    end: Times

    @property
    def lasted(self) -> Times:
        return self.end - self.start

    def overlap(self, start: Times, end: Times) -> NDArray[np.float64]:
        """The overlap of each interval with all of these, ns."""
        if not len(self.start):
            return np.zeros(len(start))
        moments = np.column_stack([self.start, self.end]).ravel()
        passed = np.repeat(np.concatenate([[0], np.cumsum(self.lasted)]), 2)[1:-1]
        return np.asarray(np.interp(end, moments, passed) - np.interp(start, moments, passed))


def compute(cell: CellView) -> Figures:
    still = standstill(cell.timed, cell.facts)
    why = "this version of the harness did not record it, or no request was sent"
    return Figures(
        standstill=still,
        engine_stall=engine_stall(cell.timed, cell.facts),
        nulls={"standstill": why} if still is None else {},
    )


def standstill(view: RequestView, facts: CellFacts) -> Standstill | None:
    """The stalls of the load process that stood still longest; None if not recorded, or if nothing was
    sent.
    """
    stalls = known(facts.client.stalls)
    part = _measured_part(view)
    if stalls is None or part is None:
        return None
    start_ns, end_ns = part
    workers = {stall.worker for stall in stalls}
    spans = [
        _span((candidate for candidate in stalls if candidate.worker == worker), part) for worker in workers
    ]
    worst = max(spans, key=lambda span: int(span.lasted.sum()), default=_span((), part))
    lost_ns = int(worst.lasted.sum())
    if not lost_ns:
        return Standstill(lost_ms=0.0, share=0.0, longest_ms=0.0, hit_share=0.0)
    sampled = _sampler(facts)
    arrived = _arrivals_inside(view.records, worst) if facts.client.stamp_source == "kernel" else None
    who = _stalled_party(worst, sampled, arrived)
    longest = int(worst.lasted.argmax())
    return Standstill(
        lost_ms=lost_ns / 1e6,
        share=lost_ns / (end_ns - start_ns),
        longest_ms=int(worst.lasted[longest]) / 1e6,
        at_s=int(worst.start[longest]) / 1e9,
        hit_share=_hit_share(view, stalls),
        who=who,
        sampler_ms=None if sampled is None else float(worst.overlap(sampled.start, sampled.end).sum()) / 1e6,
        arrived_meanwhile=None if arrived is None else int(arrived.sum()),
    )


def engine_stall(view: RequestView, facts: CellFacts) -> EngineStall | None:
    """The longest time in which nothing came from the engine though requests were in flight and bench ran.

    None where none stands out, alone or with those that cut answers as it did, or where stalls of the load
    generator were not recorded. Times are within 50 ms.
    """
    stalls, part = known(facts.client.stalls), _measured_part(view)
    if stalls is None or part is None:
        return None
    start_ns, end_ns = part
    limit_ns = _silence_limit_ms(view) * 1e6
    quiet = ~_busy_bins(view, stalls, start_ns, end_ns)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(np.int8)))
    held = view.requests[in_flight.held(view.requests)]
    begun, over = _in_flight_stretches(held)
    silences: list[tuple[int, int]] = []
    for first, last in np.minimum(edges.reshape(-1, 2) * _BIN_NS + start_ns, end_ns):
        if last - first <= limit_ns or not len(begun):
            continue
        since, until = np.maximum(begun, first), np.minimum(over, last)
        at = int((until - since).argmax())
        if until[at] - since[at] > limit_ns:
            silences.append((int(since[at]), int(until[at])))
    if not silences:
        return None
    since_ns, until_ns = max(silences, key=lambda silence: silence[1] - silence[0])
    again = [until - since for since, until in silences if _cuts_an_answer(held, since, until)]
    if max(until_ns - since_ns, sum(again)) <= SILENCE_SHARE * (end_ns - start_ns):
        return None
    waiting = (held["sent_ns"] < until_ns) & (held["end_ns"] >= until_ns)
    return EngineStall(
        at_s=since_ns / 1e9,
        lasted_ms=(until_ns - since_ns) / 1e6,
        in_flight=int(np.count_nonzero(waiting)),
        silences=len(again) if len(again) > 1 else UNSET,
        silent_ms=sum(again) / 1e6 if len(again) > 1 else UNSET,
    )


def _cuts_an_answer(held: Rows, since_ns: int, until_ns: int) -> bool:
    """Whether text came before and after: a long prefill is silent as well, and may recur."""
    begun = (held["first_text_ns"] != UNKNOWN) & (held["first_text_ns"] < since_ns)
    return bool((begun & (held["last_text_ns"] >= until_ns)).any())


def _in_flight_stretches(held: Rows) -> tuple[Times, Times]:
    """Beginnings and ends of the times in which any request was in flight.

    A slot whose request timed out sends the next one within a bin: a hang goes on.
    """
    rows = held[np.argsort(held["sent_ns"], kind="stable")]
    over = np.maximum.accumulate(rows["end_ns"])
    idle = rows["sent_ns"][1:] > over[:-1] + _BIN_NS
    begins, ends = np.append(True, idle)[: len(rows)], np.append(idle, True)[: len(rows)]
    return rows["sent_ns"][begins], over[ends]


def _measured_part(view: RequestView) -> tuple[int, int] | None:
    """First measured send to the last measured end."""
    rows = view.measured_requests[view.measured_requests["sent_ns"] != UNKNOWN]
    if not len(rows):
        return None
    start, end = int(rows["sent_ns"].min()), int(rows["end_ns"].max())
    return (start, end) if end > start else None


def _span(stalls: Iterable[Stall], part: tuple[int, int] | None = None) -> _Span:
    times = np.array(sorted((stall.at_s, stall.at_s + stall.lasted_ms / 1e3) for stall in stalls)).reshape(
        -1, 2
    )
    start, end = np.clip(np.rint(times * 1e9), -_MOST_NS, _MOST_NS).astype(np.int64).T  # of any cell.json
    if part is None:
        return _Span(start, end)
    start, end = np.maximum(start, part[0]), np.minimum(end, part[1])
    inside = end > start
    return _Span(start[inside], end[inside])


def _sampler(facts: CellFacts) -> _Span | None:
    """The stalls of the sampler; None if unknown, or if the load came from other machines."""
    if facts.telemetry is None or facts.nodes:
        return None
    stalls = known(facts.telemetry.stalls)
    return None if stalls is None else _span(stalls)


def _arrivals_inside(records: Records, span: _Span) -> Times:
    """Events per stall that the kernel stamped while the load process did not run."""
    counts = np.zeros(len(span.start), np.int64)
    for block in records.event_blocks():
        stamps = block["stamp_ns"]
        number = np.searchsorted(span.start, stamps, side="right") - 1
        inside = (number >= 0) & (stamps < span.end[number] - _WAKING_NS)
        counts += np.bincount(number[inside], minlength=len(counts))
    return counts


def _stalled_party(span: _Span, sampled: _Span | None, arrived: Times | None) -> Literal["machine", "client"]:
    """The machine if the sampler stood still as well and nothing came from the server meanwhile."""
    if sampled is None:
        return "client"
    still = sampled.overlap(span.start, span.end) >= span.lasted / 2
    if arrived is not None:
        still &= arrived == 0
    return "machine" if 2 * span.lasted[still].sum() > span.lasted.sum() else "client"


def _hit_share(view: RequestView, stalls: Sequence[Stall]) -> float:
    """Share of the answers that had more than HIT_SHARE of their time in a stall of their load process."""
    rows = view.answers
    if not len(rows):
        return 0.0
    hit = 0
    for worker in {stall.worker for stall in stalls}:
        own = rows[rows["worker"] == worker]
        span = _span(mine for mine in stalls if mine.worker == worker)
        inside = span.overlap(own["start_ns"], own["end_ns"])
        hit += int(np.count_nonzero(inside > HIT_SHARE * (own["end_ns"] - own["start_ns"] - inside)))
    return hit / len(rows)


def _silence_limit_ms(view: RequestView) -> float:
    """A prefill is silence too, as is an answer that comes whole: what is long for this cell stands out."""
    waits = (latency.of_metric(view, name) for name in ("ttft_service_ms", "e2e_ms"))
    first = next((finite for wait in waits if len(finite := wait[np.isfinite(wait)])), None)
    usual = 0.0 if first is None else float(np.quantile(first, 0.9))
    return max(LEAST_SILENCE_MS, SILENCE_TTFTS * usual)


def _ended_by_engine(requests: Rows) -> Mask:
    """Requests whose end is something that the engine sent, an error included."""
    ours = np.isin(requests["outcome"], (*CLIENT_ENDED, Outcome.LOST))
    mask: Mask = (requests["outcome"] == Outcome.OK) | ((requests["http_status"] != UNKNOWN) & ~ours)
    return mask


def _busy_bins(view: RequestView, stalls: Sequence[Stall], start_ns: int, end_ns: int) -> NDArray[np.bool_]:
    """Whether something came in each bin of 50 ms of the measured part, or may have come unseen."""
    busy = np.zeros((end_ns - start_ns) // _BIN_NS + 1, bool)

    def mark(times: Times) -> None:
        inside = times[(times >= start_ns) & (times <= end_ns)]
        busy[(inside - start_ns) // _BIN_NS] = True

    for block in view.records.event_blocks():
        mark(block["stamp_ns"])
    mark(view.requests["end_ns"][_ended_by_engine(view.requests)])
    for start, end in zip(*_span(stalls, (start_ns, end_ns)), strict=True):
        busy[(start - start_ns) // _BIN_NS : (end - start_ns) // _BIN_NS + 1] = True
    return busy
