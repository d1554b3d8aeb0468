"""Replicas: whether several URLs of one model served alike."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from harness.metrics.latency import of_metric, tpot_ms
from harness.metrics.quality import unanswered
from harness.metrics.view import Floats, RequestView
from harness.model import IssueCode, known
from harness.model.numbers import apart
from harness.records.layout import Outcome
from harness.validity.medians import LEAST_ANSWERS, NOISE_ERRORS, chance_apart, compared
from harness.validity.requests import MAX_FAILED_SHARE
from harness.validity.rule import Evidence, Rule, Violation


def _service_ms(view: RequestView) -> Floats:
    """Time from the send to the last text, of the measured answers."""
    rows = view.answers
    spans: Floats = (rows["last_text_ns"] - rows["sent_ns"]) / 1e6
    return spans


_LIKE_LENGTHS = 0.05


class _Latency(NamedTuple):
    """How far the median of one URL may be above the lowest: a share of it, or so many ms."""

    name: str
    values: Callable[[RequestView], Floats]
    share: float
    least_ms: float
    of_length: bool = False  # then only answers of like length compare


# Another route, or a neighbour on the machine, adds more to a first token, and so to E2E, than to gaps.
_LATENCIES = (
    _Latency("TTFT", partial(of_metric, name="ttft_service_ms"), 0.25, 1.0),
    _Latency("TPOT", tpot_ms, 0.1, 0.1),
    _Latency("E2E", _service_ms, 0.25, 1.0, of_length=True),
)
_LIMITS = "; ".join(
    f"{latency.name} {latency.share:.0%} of the fastest, {latency.least_ms:g} ms" for latency in _LATENCIES
)


@partial(
    Rule,
    code=IssueCode.REPLICA_FAILED,
    measures="requests that failed at one of several URLs, or all of them",
    limit=f"{MAX_FAILED_SHARE:.0%} failed, and at least one answer",
    hint="the figures are more those of the other URLs: look at that server, or leave it out",
    cause="engine",
)
def _failed(cell: Evidence) -> Iterator[Violation]:
    for index, url in enumerate(known(cell.facts.urls) or ()):
        part = cell.view.without_events(cell.records.requests["replica"] == index)
        rows, ok = part.measured_requests, len(part.answers)
        missing = np.count_nonzero(unanswered(rows, cell.requested))
        unopened = np.count_nonzero(rows["outcome"] == Outcome.NO_SOCKET)
        if not (ok or unopened) or missing > MAX_FAILED_SHARE * len(rows):
            yield Violation(f"{url}: {ok} of {len(rows)} requests answered")


@partial(
    Rule,
    code=IssueCode.REPLICA_SLOWER,
    measures="median TTFT and E2E from the send, and TPOT, at one of several URLs, less the lowest; of "
    "several kinds of requests each as a share of what is usual for its kind",
    limit=f"{_LIMITS} and {NOISE_ERRORS:g} standard errors, whichever is most; from {LEAST_ANSWERS} answers",
    hint="the figures mix a fast and a slow server: make the replicas equal, or read the table by URL",
    cause="engine",
)
def _slower(cell: Evidence) -> Iterator[Violation]:
    """Compares each URL with the lowest median, so that of two URLs only one is named, once."""
    found: dict[int, list[tuple[str, str]]] = {}
    replica, urls = cell.records.requests["replica"], known(cell.facts.urls) or ()
    parts = [cell.view.without_events(replica == index) for index in range(len(urls))]
    for latency in _LATENCIES:
        for index, measured, limit in _above(cell, latency, parts):
            found.setdefault(index, []).append((f"{latency.name} {measured}", f"{latency.name} {limit}"))
    for index, slower in found.items():
        yield Violation(
            f"{urls[index]}: {'; '.join(measured for measured, _ in slower)}",
            ", ".join(limit for _, limit in slower),
        )


def _above(cell: Evidence, latency: _Latency, parts: Sequence[RequestView]) -> Iterator[tuple[int, str, str]]:
    times, usual_ms = compared(cell, parts, latency.values)
    for index, more, limit, lowest in _beyond(latency, times, parts, latency.least_ms / (usual_ms or 1.0)):
        if usual_ms is None:
            shown, allowed = apart(more, limit, 2)
            yield index, f"+{shown} ms, {lowest:.2f} ms at the fastest", f"{allowed} ms"
        else:
            shown, allowed = apart(100 * more / lowest, 100 * limit / lowest, 0)
            yield index, f"+{shown}% in requests of like kind", f"{allowed}%"


def _beyond(
    latency: _Latency, times: Sequence[Floats], parts: Sequence[RequestView], least: float
) -> Iterator[tuple[int, float, float, float]]:
    """Yields, of each URL whose median is beyond the limit: how far, the limit, and the lowest median."""
    judged = [index for index, values in enumerate(times) if len(values) >= LEAST_ANSWERS]
    if not judged:
        return
    first = min(judged, key=lambda index: float(np.median(times[index])))
    lowest = float(np.median(times[first]))
    for index in judged:
        if latency.of_length and not _like_lengths(parts[index], parts[first]):
            continue
        limit = max(least, latency.share * lowest, chance_apart(times[index], times[first]))
        if (more := float(np.median(times[index])) - lowest) > limit:
            yield index, more, limit, lowest


def _like_lengths(view: RequestView, others: RequestView) -> bool:
    """Whether both served answers of similar lengths: dealing in turn may give one URL all the long ones."""
    means = [float(part.answers["output_tokens"].mean()) for part in (view, others)]
    return abs(means[0] - means[1]) <= _LIKE_LENGTHS * max(min(means), 1.0)


RULES = (_failed, _slower)
