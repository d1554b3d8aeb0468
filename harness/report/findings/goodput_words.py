"""Goodput and limits of a load in sentences. Knows no output format."""

from collections.abc import Sequence

from harness.model import Good, Limit
from harness.model.grouping import grouped
from harness.model.measures import Measure, measure
from harness.model.numbers import counted, number, percent_of_all
from harness.report.findings.conclusion import goodput
from harness.report.view import Group, Row
from harness.report.wording import listing, plain

IN_WORDS = 3  # backends that are named; of more it says how many
_GOODPUT = "goodput_requests_per_s"


def goodput_words(group: Group) -> str:
    """`inside E2E ≤ 1000 ms: vllm 4.05 req/s, 100%; tgi 0 req/s, 0% of the requests; E2E p95: kept by vllm,
    missed by tgi`, or "". A latency of one limit has its value in the first part alone.
    """
    found = goodput(group)
    if found is None:
        return ""
    loosest_ms = _loosest_ms(found.limits)
    limits = listing([measure(metric).at_most(ms) for metric, ms in loosest_ms.items()])
    some, good = _good_words(group, found.places)
    asked = _name if len(loosest_ms) == len(found.limits) else limit_words
    alike = grouped((_kept_by(group, limit), asked(limit)) for limit in found.limits)
    kept = "; ".join(f"{listing(names)}: {by}" for by, names in alike.items())
    return plain(f"{some}inside {limits}: {good}; {kept}", 600)


def _good_words(group: Group, places: Sequence[Good]) -> tuple[str, str]:
    """The backends that are named, and `vllm 4.05 req/s, 100%; tgi 0 req/s, 0% of the requests`."""
    if not any(good.share for good in places):
        labels = [good.label for good in places]
        return "", f"no request{f' of {listing(labels)}' if len(labels) <= IN_WORDS else ''}"
    named = places if len(places) <= IN_WORDS else (places[-1], places[0])
    highest = {row.label: spread.high for row in group.rows if (spread := row.spread(_GOODPUT))}
    words = [
        f"{good.label} {_rate(good, highest[good.label])}, {percent_of_all(good.share)}%" for good in named
    ]
    return "" if named is places else "least and most ", f"{'; '.join(words)} of the requests"


def _kept_by(group: Group, limit: Limit) -> str:
    """`kept by vllm, missed by tgi (707 ms) and llamacpp (508 ms, in 1 of 3 repeats)`; tgi in all repeats."""
    met = {
        row.label: [
            each.met for cell in row.usable if cell.slo for each in cell.slo.limits if _same(each, limit)
        ]
        for row in group.rows
    }
    kept = [label for label, each in met.items() if each and all(each)]
    missed = [_missed(row, limit, met[row.label]) for row in group.rows if not all(met[row.label])]
    if len(kept) + len(missed) > IN_WORDS:
        return f"kept by {len(kept)} of {counted(len(kept) + len(missed), 'backend')}"
    parts = (f"{how} by {listing(names)}" for how, names in (("kept", kept), ("missed", missed)) if names)
    return ", ".join(parts)


def _missed(row: Row, limit: Limit, met: Sequence[bool]) -> str:
    """`tgi (707 ms, in 1 of 3 repeats)`: the median of the repeats, where it is beyond the limit."""
    value = row.median(f"{limit.metric}.{limit.share}")
    parts = [f"{number(value, limit.limit_ms)} ms"] if value is not None and value > limit.limit_ms else []
    parts += [f"in {met.count(False)} of {counted(len(met), row.unit)}"] if any(met) else []
    return f"{row.label} ({', '.join(parts)})" if parts else row.label


def _same(limit: Limit, other: Limit) -> bool:
    return (limit.metric, limit.share, limit.limit_ms) == (other.metric, other.share, other.limit_ms)


def _rate(good: Good, highest: float) -> str:
    """The share is the mean of the repeats, the rate the median; a window may have no good request."""
    where = " in the median repeat" if highest else " in the window"
    return f"{number(good.requests_per_s)} req/s{where if good.share and not good.requests_per_s else ''}"


def _loosest_ms(limits: Sequence[Limit]) -> dict[str, float]:
    """The limit of each latency that a good request keeps; shares say how many requests have to be good."""
    loosest: dict[str, float] = {}
    for limit in limits:
        loosest[limit.metric] = max(limit.limit_ms, loosest.get(limit.metric, 0.0))
    return loosest


def limit_words(limit: Limit) -> str:
    """`E2E p95 ≤ 1000 ms`."""
    return _measure(limit).at_most(limit.limit_ms)


def _name(limit: Limit) -> str:
    return _measure(limit).name


def _measure(limit: Limit) -> Measure:
    return measure(f"{limit.metric}.{limit.share}")
