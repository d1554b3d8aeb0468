"""Requests that kept to the limits of the scenario: how many, at which rate, and whether enough did."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.metrics import latency
from harness.metrics.throughput import Window
from harness.model import Limit
from harness.model import Slo as KeptSlo
from harness.records.layout import UNKNOWN, Outcome, Phase

Slo = Mapping[str, Mapping[str, float]]  # latency → share → limit in ms
Floats = NDArray[np.float64]


_UNKNOWN_SHARE = 0.01  # of the requests: so few unknown TPOTs count as missed; with more nothing is known


def _tpot_ms(requests: NDArray[np.void]) -> Floats:
    """One per measured request: infinite where there was no answer, 0 where one token has no TPOT, else NaN
    where it is not known: tokens that were not counted, or that came at once."""
    rows = requests[latency.measured(requests)]
    tokens, spans = rows["output_tokens"], latency.per_token_ms(rows)
    single = (tokens != UNKNOWN) & (np.maximum(tokens - 1, rows["text_events"]) <= 1)
    spans = np.where(tokens == UNKNOWN, np.nan, np.where(single, 0.0, spans))
    return np.where(rows["outcome"] == Outcome.OK, spans, np.inf)


def _few_missed(values: Floats) -> Floats:
    """With unknown ones as missed, where they are few: one odd answer leaves a thousand others judged."""
    unknown = np.isnan(values)
    few = unknown.sum() <= _UNKNOWN_SHARE * len(values)
    return np.where(unknown, np.inf, values) if few else values


_LATENCIES = {**latency.PER_REQUEST, "tpot_ms": _tpot_ms}


class Goodput(NamedTuple):
    slo: KeptSlo | None = None
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None  # of the good answers


def goodput(requests: NDArray[np.void], slo: Slo, window: Window | None, shares: Floats) -> Goodput:
    """A request is good when it was answered with each latency within the loosest of its limits.

    `shares` of `work_shares`: the rates count good answers as requests/s counts all of them, of any phase.
    Nothing is known without limits, without a measured request, or where a latency is not known.
    """
    everyone = requests.copy()  # the tail of a warm-up request may lie in the window
    everyone["phase"] = Phase.MEASURE
    judged = latency.measured(everyone)
    values = {name: _few_missed(_LATENCIES[name](everyone)) for name in slo}
    rows, measured = requests[judged], latency.measured(requests)[judged]
    if not slo or not measured.any() or any(np.isnan(found).any() for found in values.values()):
        return Goodput()
    limits = tuple(
        _limit(name, share, limit_ms, values[name][measured])
        for name, wanted in slo.items()
        for share, limit_ms in wanted.items()
    )
    good = rows["outcome"] == Outcome.OK
    for name, wanted in slo.items():
        good &= values[name] <= max(wanted.values())
    made = KeptSlo(
        limits=limits,
        met=all(limit.met for limit in limits),
        good=int(good[measured].sum()),
        requests=int(measured.sum()),
        attainment=float(good[measured].mean()),
        good_token_share=_token_share(rows[measured], good[measured]),
    )
    if window is None:
        return Goodput(made)
    counted, tokens = shares[judged] * good, rows["output_tokens"]
    known = bool((tokens[shares[judged] > 0] != UNKNOWN).all())
    return Goodput(
        made,
        window.per_second(counted.sum()),
        window.per_second((counted * tokens).sum()) if known else None,
    )


def _token_share(rows: NDArray[np.void], good: NDArray[np.bool_]) -> float | None:
    """Of the output tokens that were answered, those of good requests; None where they were not counted."""
    answered = rows["outcome"] == Outcome.OK
    tokens = rows["output_tokens"]
    if (tokens[answered] == UNKNOWN).any() or not tokens[answered].sum():
        return None
    return float(tokens[good].sum() / tokens[answered].sum())


def _limit(name: str, share: str, limit_ms: float, values: Floats) -> Limit:
    within = float((values <= limit_ms).mean())
    return Limit(
        metric=name,
        share=share,
        limit_ms=limit_ms,
        within=within,
        met=within >= (1.0 if share == "max" else float(share.removeprefix("p")) / 100),
    )
