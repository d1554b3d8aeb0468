"""Parts of what a run shows, as data: the order of the backends, each pair's speed-up, goodput, doubts.

Terminal, JSON, Markdown and report word their claims from these types. Knows no output format.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

from harness.model import (
    Good,
    Goodput,
    Interval,
    LoadPoint,
    Order,
    PairState,
    PairVerdict,
    Place,
    Reason,
    Speedup,
    Summary,
    UnderLoad,
)
from harness.model.grouping import grouped
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.view import Group, Row, groups, labels
from harness.report.wording import listing, plain
from harness.verdicts.pairs import left_out_words

GROWS = 1.1  # throughput that grows by less with more users is at its limit
NAMED = 3  # backends of a doubt, if it is of all
APART = 1.5  # ratio of users below which so little growth says nothing
# Growth of throughput, as a share of the growth of users, above which it is not at its limit.
IN_STEP = 0.5
_THROUGHPUT, _FIRST_TOKEN = "output_tokens_per_s", "ttft_ms.p50"
_STATES: dict[str, PairState] = {
    "faster": "separated",
    "slower": "separated",
    "same": "same",
    "not enough runs": "undecided",
    "not comparable": "not comparable",
}


def orders(summary: Summary, group: Group) -> tuple[Order, ...]:
    """Orders in every metric that was compared at this load, the primary one first; else in those the
    scenario declares."""
    entries = [entry for entry in summary.comparison if entry.load == group.point]
    first = summary.verdict_rules.primary
    names = dict.fromkeys(entry.metric for entry in entries)
    metrics = sorted(names or summary.verdict_rules.metrics, key=lambda metric: metric != first)
    return tuple(_order(group, metric, entries) for metric in metrics)


def order(summary: Summary, group: Group) -> Order:
    """The order in the primary metric. It has no pairs if nothing was compared."""
    entries = [entry for entry in summary.comparison if entry.load == group.point]
    return _order(group, summary.verdict_rules.primary, entries)


def _order(group: Group, metric: str, entries: Sequence[PairVerdict]) -> Order:
    places = [_place(row, metric) for row in group.rows]
    doubtful = {standing.label for standing in places if standing.doubt}
    pairs = tuple(speedup(entry, doubtful) for entry in entries if entry.metric == metric)
    return order_of(group.point, metric, places, pairs)


def order_of(load: LoadPoint, metric: str, places: Sequence[Place], pairs: tuple[Speedup, ...]) -> Order:
    sign = -1 if measure(metric).metric.better == "higher" else 1
    ranked = sorted(places, key=lambda standing: (standing.median is None, sign * (standing.median or 0.0)))
    return Order(load=load, metric=metric, places=tuple(ranked), groups=_groups(ranked, pairs), pairs=pairs)


def _groups(places: Sequence[Place], pairs: Sequence[Speedup]) -> tuple[tuple[str, ...], ...]:
    """Cuts where all before are separated from all after, and ahead of them."""
    apart = {(pair.ahead, pair.behind) for pair in pairs if pair.state == "separated"}
    known = [standing.label for standing in places if standing.median is not None]
    cuts = [
        index
        for index in range(1, len(known))
        if all(pair in apart for pair in product(known[:index], known[index:]))
    ]
    ends = [*cuts, len(known)] if known else []
    return tuple(tuple(known[start:end]) for start, end in zip([0, *cuts], ends, strict=False))


def _place(row: Row, metric: str) -> Place:
    spread = row.spread(metric)
    return Place(
        label=row.label,
        median=spread.median if spread else None,
        repeats=spread.repeats if spread else 0,
        doubt=doubt(row, metric),
    )


def speedup(entry: PairVerdict, doubtful: set[str] | frozenset[str] = frozenset()) -> Speedup:
    """`doubtful`: labels whose values of this metric are in doubt at this load."""
    state = _STATES[entry.verdict]
    times = _better(entry)
    a_ahead = entry.verdict == "faster" or (
        entry.verdict != "slower" and (times is None or times.estimate >= 1)
    )
    ahead, behind = (entry.a, entry.b) if a_ahead else (entry.b, entry.a)
    return Speedup(
        ahead=ahead,
        behind=behind,
        state=state,
        times=times if a_ahead or times is None else _turned(times),
        why=plain(entry.why),
        lacks=plain(entry.lacks),
        runs_needed=entry.runs_needed,
        left_out="; ".join(_left_out(entry)),
        in_doubt=tuple(label for label in (ahead, behind) if label in doubtful),
    )


def _left_out(entry: PairVerdict) -> Iterator[str]:
    for label, out, measured in zip((entry.a, entry.b), entry.left_out, entry.measured, strict=True):
        if out:
            yield f"{label}: {left_out_words(out, measured)}"


def _better(entry: PairVerdict) -> Interval | None:
    """How many times better a is than b."""
    if entry.ratio is None:
        return None
    return entry.ratio if entry.better == "higher" else _turned(entry.ratio)


def _turned(ratio: Interval) -> Interval:
    low, middle, high = (1 / end if end else float("inf") for end in ratio)
    return Interval(high, middle, low)


def under_load(summary: Summary) -> Iterator[UnderLoad]:
    """The course of every backend that was measured in a closed loop, without cells that were cut short.

    Other tools end each load by cancelling what is in flight: that cuts nothing short.
    """
    closed = [group for group in groups(summary) if group.point.kind == "concurrency"]
    for label in labels(summary):
        rows = [(group.point.value, row) for group in closed for row in group.rows if row.label == label]
        mine = [(users, whole) for users, row in rows if (whole := _whole(row)).cells]
        if mine:
            yield _course(label, mine)


def _whole(row: Row) -> Row:
    return replace(
        row, cells=tuple(cell for cell in row.cells if cell.imported or not cell.requests.cancelled)
    )


def _course(label: str, mine: Sequence[tuple[float, Row]]) -> UnderLoad:
    rates = [row.median(_THROUGHPUT) for _users, row in mine]
    reached, at = _limit([(users, rate) for (users, _row), rate in zip(mine, rates, strict=True) if rate])
    return UnderLoad(
        label=label,
        users=tuple(users for users, _row in mine),
        output_tokens_per_s=tuple(rates),
        first_token_ms=tuple(row.median(_FIRST_TOKEN) for _users, row in mine),
        limit_reached=reached,
        limit_users=at,
        in_doubt=any(doubt(row, path) for _users, row in mine for path in (_THROUGHPUT, _FIRST_TOKEN)),
    )


def _limit(known: Sequence[tuple[float, float]]) -> tuple[bool | None, float | None]:
    """Whether the limit was reached, and the fewest users after which throughput stayed flat.

    `known`: users and throughput, ascending. None: no two loads lie far enough apart, or the last growth was
    between flat and in step with the users.
    """
    most, last = known[-1] if known else (0.0, 0.0)
    before = [(users, rate) for users, rate in known if APART * users <= most]
    for users, rate in before:
        if max(later for count, later in known if count > users) < GROWS * rate:
            return True, users
    if not before:
        return None, None
    users, rate = before[-1]
    return (False, None) if last / rate - 1 >= IN_STEP * (most / users - 1) else (None, None)


def goodput(group: Group) -> Goodput | None:
    """None without limits, or without a figure."""
    known = [(row, slos) for row in group.rows if (slos := [cell.slo for cell in row.usable if cell.slo])]
    places = [
        Good(label=row.label, requests_per_s=rate, share=fmean(slo.attainment for slo in slos))
        for row, slos in known
        if (rate := row.median("goodput_requests_per_s")) is not None
    ]
    if not places:
        return None
    places.sort(key=lambda standing: -standing.requests_per_s)
    return Goodput(load=group.point, limits=known[0][1][0].limits, places=tuple(places))


def doubt(row: Row, metric: str = "") -> str:
    """The repeats that are not VALID, and the rules by which; of one metric, or of all."""
    count, reasons = _doubt(row, metric)
    return plain(f"{count}: {', '.join(_codes(reasons, row.unit))}") if count else ""


def _doubt(row: Row, metric: str = "") -> tuple[str, list[list[Reason]]]:
    """`1 of 3 repeats SUSPECT`, and the reasons in each of these; "" if all are VALID."""
    verdict, reasons = row.validity(metric)
    if verdict == "VALID":
        return "", []
    return f"{len(reasons)} of {counted(len(row.cells), row.unit)} {verdict}", reasons


def _codes(by_repeat: Sequence[Sequence[Reason]], unit: str) -> Iterator[str]:
    """Each rule once, with the metrics that it is about in some repeat, unless it is about all in any.

    A rule that not all of these repeats broke has the number of those that did.
    """
    broken = grouped((reason.code, reason) for reasons in by_repeat for reason in reasons)
    repeats = Counter(code for reasons in by_repeat for code in {reason.code for reason in reasons})
    for code, reasons in broken.items():
        mine = [reason.metrics for reason in reasons]
        names = dict.fromkeys(measure(name).name for metrics in mine for name in metrics)
        about = [f"{listing(list(names))} alone"] if all(mine) else []
        about += [counted(repeats[code], unit)] if repeats[code] < len(by_repeat) else []
        yield f"{code} ({', '.join(about)})" if about else str(code)


def doubts(group: Group) -> Iterator[str]:
    """`vllm and llamacpp: 3 of 3 repeats SUSPECT: ramp-kept`: backends in the same doubt share a line."""
    alike = grouped((words, row.label) for row in group.rows if (words := doubt(row)))
    for words, names in alike.items():
        yield f"{_who(names, group)}: {words}"


def doubts_by_count(group: Group) -> Iterator[str]:
    """Fewer lines than `doubts`: backends with equally many doubtful repeats share one, with the rules of
    all."""
    found = ((row.label, *_doubt(row)) for row in group.rows)
    alike = grouped((count, (label, reasons)) for label, count, reasons in found if count)
    for count, mine in alike.items():
        codes = _codes([each for _label, reasons in mine for each in reasons], group.rows[0].unit)
        yield plain(f"{_who([label for label, _reasons in mine], group)}: {count}: {', '.join(codes)}")


def _who(names: Sequence[str], group: Group) -> str:
    """Names many backends together where they are all."""
    return f"all {len(names)} backends" if len(group.rows) == len(names) > NAMED else listing(names)
