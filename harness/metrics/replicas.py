"""The requests of a cell by the URL they went to, and how evenly the URLs worked."""

from collections.abc import Sequence

import numpy as np

from harness.metrics import latency
from harness.metrics.cache_hits import cached_share
from harness.metrics.distribution import latency_stats
from harness.metrics.view import Floats, RequestView, Rows
from harness.metrics.window import Window
from harness.model import UNSET, CellFacts, Replica, Replicas
from harness.records.layout import UNKNOWN


def replicas(view: RequestView, facts: CellFacts, window: Window | None, shares: Floats) -> Replicas | None:
    """None for one server. `shares`: the part of each request's work inside the window."""
    if facts.urls is UNSET or facts.balance is UNSET:
        return None
    sent = view.measured_requests["replica"]
    total = int(np.count_nonzero(sent != UNKNOWN))
    parts = []
    for index, url in enumerate(facts.urls):
        mask = view.requests["replica"] == index
        part = view.without_events(mask)
        count, ok = len(part.measured_requests), len(part.answers)
        parts.append(
            Replica(
                url=url,
                requests=count,
                ok=ok,
                failed=count - ok,
                share=count / total if total else None,
                ttft_ms=latency_stats(latency.of_metric(part, "ttft_ms"))[0],
                tpot_ms=latency_stats(latency.tpot_ms(part))[0],
                e2e_ms=latency_stats(latency.of_metric(part, "e2e_ms"))[0],
                cached_share=cached_share(part.answers),
                output_tokens_per_s=_tokens_per_s(part.requests, window, shares[mask]),
            )
        )
    return Replicas(
        balance=facts.balance,
        fairness=fairness([part.output_tokens_per_s for part in parts]),
        urls=tuple(parts),
    )


def _tokens_per_s(rows: Rows, window: Window | None, shares: Floats) -> float | None:
    if window is None or (rows["output_tokens"][shares > 0] == UNKNOWN).any():
        return None
    return window.per_second(float((shares * np.maximum(rows["output_tokens"], 0)).sum()))


def fairness(rates: Sequence[float | None]) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 where all are equal, 1/n where one has everything.

    Jain, Chiu, Hawe: A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems, DEC TR-301, 1984. None where one is not known, or all are 0.
    """
    values = [rate for rate in rates if rate is not None]
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares and len(values) == len(rates) else None
