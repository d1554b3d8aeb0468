"""Requests within the limits of the scenario: how many, at which rate, and whether enough are."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.metrics import latency
from harness.metrics.reason import NO_ANSWER
from harness.metrics.view import CellView, Figures, Floats, Mask, RequestView, Rows
from harness.metrics.window import Window
from harness.model import Limit
from harness.model import Slo as KeptSlo
from harness.model.figures import share_of
from harness.records.layout import UNKNOWN, Outcome, Phase

Slo = Mapping[str, Mapping[str, float]]  # latency → share → limit in ms
_UNKNOWN_SHARE = 0.01  # of the requests: so few unknown TPOTs count as missed; with more nothing is known


def compute(cell: CellView) -> Figures:
    good = cell.of(goodput_of)
    if not cell.facts.slo:
        why = "the scenario sets no limits ([slo])"
    else:
        why = NO_ANSWER if cell.window is None else "a latency with a limit is not known"
    return Figures(
        goodput_requests_per_s=good.requests_per_s,
        slo=good.slo,
        nulls={"goodput_requests_per_s": why} if good.requests_per_s is None else {},
    )


def goodput_of(cell: CellView) -> "Goodput":
    return goodput(cell, cell.facts.slo or {}, cell.window, cell.shares)


def _tpot_ms(view: RequestView) -> Floats:
    """One per measured request: +inf without an answer, 0 for an answer of one token, NaN where it is not
    known (tokens not counted, or all at once)."""
    rows = view.measured_requests
    tokens, spans = rows["output_tokens"], latency.tpot_of_each_ms(view)
    single = (tokens != UNKNOWN) & (np.maximum(tokens - 1, rows["text_events"]) <= 1)
    return np.where(single & np.isnan(spans), 0.0, spans)


def _few_missed(values: Floats) -> Floats:
    """Takes unknown values for missed limits where they are few, so that one odd answer does not void a
    thousand."""
    unknown = np.isnan(values)
    few = unknown.sum() <= _UNKNOWN_SHARE * len(values)
    return np.where(unknown, np.inf, values) if few else values


class Goodput(NamedTuple):
    slo: KeptSlo | None = None
    requests_per_s: float | None = None
    output_tokens_per_s: float | None = None  # of the good answers


def goodput(view: RequestView, slo: Slo, window: Window | None, shares: Floats) -> Goodput:
    """A request is good when it was answered with each latency within the loosest of its limits.

    `shares`: of `work_shares`. The rates count good answers as requests/s counts all of them, of any phase.
    Nothing is known without limits, without a measured request, or where a latency is not known.
    """
    if not slo or not view.measured.any():
        return Goodput()
    counted = view.requests.copy()
    counted["phase"][shares > 0] = Phase.MEASURE  # the tail of a warm-up request may lie in the window
    everyone = RequestView(replace(view.records, requests=counted))
    values = {
        name: _tpot_ms(everyone) if name == "tpot_ms" else latency.of_metric(everyone, name) for name in slo
    }
    judgeable = everyone.measured
    rows, share, measured = view.requests[judgeable], shares[judgeable], view.measured[judgeable]
    kept = _kept(rows[measured], {name: found[measured] for name, found in values.items()}, slo)
    judged = _judged(rows, values, slo)
    if kept is None or judged is None or window is None:
        return Goodput(kept)
    inside, tokens = share * judged.good, rows["output_tokens"]
    known = bool((tokens[share > 0] != UNKNOWN).all())
    return Goodput(
        kept, window.per_second(inside.sum()), window.per_second((inside * tokens).sum()) if known else None
    )


class _Judged(NamedTuple):
    values: dict[str, Floats]  # by latency, one for each of the rows
    good: Mask


def _judged(rows: Rows, values: Mapping[str, Floats], slo: Slo) -> _Judged | None:
    """None where a latency is not known."""
    known = {name: _few_missed(found) for name, found in values.items()}
    if any(np.isnan(found).any() for found in known.values()):
        return None
    good = rows["outcome"] == Outcome.OK
    for name, wanted in slo.items():
        good &= known[name] <= max(wanted.values())
    return _Judged(known, good)


def _kept(rows: Rows, values: Mapping[str, Floats], slo: Slo) -> KeptSlo | None:
    """Judges the measured requests; None where a latency is not known."""
    judged = _judged(rows, values, slo)
    if judged is None:
        return None
    limits = tuple(
        _limit(name, share, limit_ms, judged.values[name])
        for name, wanted in slo.items()
        for share, limit_ms in wanted.items()
    )
    return KeptSlo(
        limits=limits,
        met=all(limit.met for limit in limits),
        good=int(judged.good.sum()),
        requests=len(judged.good),
        attainment=float(judged.good.mean()),
        good_token_share=_token_share(rows, judged.good),
    )


def _token_share(rows: Rows, good: Mask) -> float | None:
    """The share of the output tokens that belongs to good requests; None if they were not counted."""
    answered = rows["outcome"] == Outcome.OK
    tokens = rows["output_tokens"]
    if (tokens[answered] == UNKNOWN).any() or not tokens[answered].sum():
        return None
    return float(tokens[good].sum() / tokens[answered].sum())


def _limit(name: str, share: str, limit_ms: float, values: Floats) -> Limit:
    within = float((values <= limit_ms).mean())
    return Limit(metric=name, share=share, limit_ms=limit_ms, within=within, met=within >= share_of(share))
