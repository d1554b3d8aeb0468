"""Replicas: whether several URLs of one model served alike."""

from collections.abc import Iterator

import numpy as np

from harness.metrics.latency import answered, measured, ttft_service_ms
from harness.metrics.quality import form_refused
from harness.model import IssueCode, known
from harness.validity.nodes import LEAST_ANSWERS, NOISE_ERRORS, finite, median_error
from harness.validity.requests import MAX_FAILED_SHARE
from harness.validity.rule import Evidence, Rule, Violation

_APART_SHARE = 0.25  # of the fastest one's: what another route, or a neighbour on the machine, may add
_APART_MS = 1.0


def _failed(cell: Evidence) -> Iterator[Violation]:
    requests = cell.records.requests
    for place, url in enumerate(known(cell.facts.urls) or ()):
        rows = requests[measured(requests) & (requests["replica"] == place)]
        ok = int(answered(rows).sum())
        refused = 0 if cell.requested is None else np.count_nonzero(form_refused(rows, cell.requested))
        if not ok or len(rows) - ok - refused > MAX_FAILED_SHARE * len(rows):
            yield Violation(f"{url}: {ok} of {len(rows)} requests answered")


def _slower(cell: Evidence) -> Iterator[Violation]:
    """Against the fastest, so that of two only one is named."""
    requests, urls = cell.records.requests, known(cell.facts.urls) or ()
    times = [finite(ttft_service_ms(requests[requests["replica"] == place])) for place in range(len(urls))]
    judged = [(url, ms) for url, ms in zip(urls, times, strict=True) if len(ms) >= LEAST_ANSWERS]
    fastest = min((ms for _, ms in judged), key=lambda ms: float(np.median(ms)), default=None)
    if fastest is None:
        return
    least = float(np.median(fastest))
    for url, ms in judged:
        noise = NOISE_ERRORS * float(np.hypot(median_error(ms), median_error(fastest)))
        limit_ms, apart_ms = max(_APART_MS, _APART_SHARE * least, noise), float(np.median(ms)) - least
        if apart_ms > limit_ms:
            yield Violation(f"{url}: {apart_ms:+.2f} ms, {least:.2f} ms at the fastest", f"{limit_ms:.2f} ms")


RULES = (
    Rule(
        code=IssueCode.REPLICA_FAILED,
        find=_failed,
        measures="requests that failed at one of several URLs, or all of them",
        limit=f"{MAX_FAILED_SHARE:.0%} failed, and at least one answer",
        hint="the figures are more those of the other URLs: look at that server, or leave it out",
        cause="engine",
    ),
    Rule(
        code=IssueCode.REPLICA_SLOWER,
        find=_slower,
        measures="median TTFT from the send at one of several URLs, less that at the fastest",
        limit=f"{_APART_MS:g} ms, {_APART_SHARE:.0%} of the fastest and {NOISE_ERRORS:g} standard errors, "
        f"whichever is most; from {LEAST_ANSWERS} answers",
        hint="the figures mix a fast and a slow server: make the replicas equal, or read the table by URL",
        cause="engine",
    ),
)
