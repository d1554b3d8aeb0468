"""What a load point showed, in sentences. Knows no output format."""

from collections.abc import Iterator, Sequence

from harness.model import Summary
from harness.report.conclusion import Order, Place, Speedup, doubt, order, orders
from harness.report.measures import Measure
from harness.report.text import counted, listing, number, plain
from harness.report.view import Group, Row, groups, labels

IN_WORDS = 3  # backends: with more, a list of values is harder to read than the table
STEADY = 1.25  # a first token that varies by less between loads stays where it is
GROWS = 1.1  # throughput that grows by less with more users is at its limit
# Of the metrics that people ask for by what they wait for.
_WAITS = {
    "ttft_ms": "first token",
    "ttft_service_ms": "first token, from its sending",
    "itl_ms": "gap between tokens",
    "tpot_ms": "each further token",
    "e2e_ms": "whole answer",
    "output_tokens_per_s": "output tokens/s",
}


def sentence(summary: Summary, group: Group) -> str:
    """Who has the best median in the primary metric, and from whom it is separated."""
    of = order(summary, group)
    if of.best is not None and any(pair.times for pair in of.about(of.best.label)):
        return plain(" ".join(_best(of, of.best)), 900)
    return plain(_why_nobody(of) + _measured(group, of.of), 600)


def _best(of: Order, best: Place) -> Iterator[str]:
    extreme = "Highest" if of.of.metric.better == "higher" else "Lowest"
    marked = " (in doubt)" if best.doubt else ""
    yield f"{extreme} median {of.of.name}: {best.label}{marked}, {_value(best.median or 0.0, of.of)}."
    pairs = of.about(best.label)
    apart = [pair for pair in pairs if pair.state == "separated"]
    ahead = [pair for pair in apart if pair.ahead == best.label]
    if ahead:
        whole = len(ahead) <= IN_WORDS
        names = [f"{pair.behind} by {pair.span if whole else pair.factor}" for pair in ahead]
        yield f"Better than {listing(names)}."
    for pair in apart:
        if pair.behind == best.label:
            yield f"Over the geometric mean of the repeats {pair.ahead} is better by {pair.span}."
    for state, text in (
        ("undecided", f"Not separated from {{}} after {counted(best.repeats, 'repeat')}."),
        ("same", "The same as {} within noise."),
        ("not comparable", "Not comparable with {}."),
    ):
        others = [_other(pair, best.label) for pair in pairs if pair.state == state]
        if others:
            yield text.format(listing(others))


def _other(pair: Speedup, label: str) -> str:
    return pair.behind if pair.ahead == label else pair.ahead


def by_metric(summary: Summary, group: Group) -> dict[str, str]:
    """`first token` → `vllm 5.08× faster (4.91 to 5.25)`, for each metric that was compared at this load.

    Empty where no pair has an interval.
    """
    found = orders(summary, group)
    if not any(pair.times for one in found for pair in one.pairs):
        return {}
    claims: dict[str, str] = {}
    said = ""
    for one in found:
        left_out = next((pair.left_out for pair in one.pairs), "") if len(one.pairs) == 1 else ""
        # The rank line of the primary metric has its own; only what differs from it is new.
        more = f" ({left_out})" if left_out and one is not found[0] and left_out != said else ""
        said = left_out or said
        claims[_waited(one.of)] = plain(f"{_in_direction(one)}{more}")
    return claims


def _waited(of: Measure) -> str:
    name = _WAITS.get(of.metric.name)
    if name is None:
        return of.name
    return f"{name}, {of.statistic}" if of.statistic not in ("", "p50") else name


def _in_direction(of: Order) -> str:
    if len(of.places) == 2 and len(of.pairs) == 1:
        return pair_words(of.pairs[0], of.of)
    best = of.best
    if best is None:
        return "no figure"
    pairs = of.about(best.label)
    value = f"{best.label} {_value(best.median or 0.0, of.of)}"
    if len(pairs) == len(of.places) - 1 and all(
        pair.state == "separated" and pair.ahead == best.label for pair in pairs
    ):
        return f"{value}, better than all others"
    close = [
        _other(pair, best.label)
        for pair in pairs
        if pair.state in ("undecided", "same") or pair.behind == best.label
    ]
    if not close:
        return value
    names = listing(close) if len(close) < IN_WORDS else f"{len(close)} others"
    return f"{value}, not separated from {names}"


def pair_words(pair: Speedup, of: Measure) -> str:
    """`vllm 5.08× faster (4.91 to 5.25)`, `vllm 2.44× (0.96 to 6.2), undecided`, `same within noise`."""
    if pair.state == "separated":
        return f"{pair.ahead} {pair.span.replace(' ', f' {_more(of)} ', 1)}" if pair.times else pair.ahead
    if pair.state == "same":
        return "the same within noise"
    if pair.state == "undecided" and pair.times:
        return f"{pair.ahead} {pair.span}, undecided"
    return pair.state


def _more(of: Measure) -> str:
    if of.metric.family == "latency":
        return "faster"
    return "more" if of.metric.better == "higher" else "less"


def _why_nobody(of: Order) -> str:
    """Nothing where runs are missing: the page says so once."""
    states = {pair.state for pair in of.pairs}
    if states == {"not comparable"}:
        reasons = dict.fromkeys(pair.why for pair in of.pairs)
        return f"Not comparable in {of.of.name}: {'; '.join(reasons)}. "
    return ""


def _measured(group: Group, of: Measure) -> str:
    if len(group.rows) <= IN_WORDS:
        return f"{'; '.join(map(_words, group.rows))}."
    values = [(value.median, row.label) for row in group.rows if (value := row.spread(of.path))]
    if not values:
        return "No valid measurement."
    (low, one), (high, other) = min(values), max(values)
    return f"{of.name} from {_value(low, of)} ({one}) to {_value(high, of)} ({other})."


def _words(row: Row) -> str:
    if not row.usable:
        return f"{row.label}: no valid measurement"
    first, rate = row.spread("ttft_ms.p50"), row.spread("output_tokens_per_s")
    wait = f"first token after {number(first.median)} ms" if first else "time to first token not known"
    speed = f"{number(rate.median)} output tokens/s" if rate else "token rate not known"
    return f"{row.label}: {wait} (median), {speed}" if first else f"{row.label}: {wait}, {speed}"


def _value(value: float, of: Measure) -> str:
    return f"{number(value * of.scale)} {of.unit}".strip()


def under_load(summary: Summary) -> Iterator[str]:
    """Per backend how throughput and first token go with the users: `155 tok/s at 8 users, 19 at 1; …`.

    Nothing where fewer than two numbers of users have a figure.
    """
    closed = [group for group in groups(summary) if group.point.kind == "concurrency"]
    for label in labels(summary):
        rows = [(group.point.value, row) for group in closed for row in group.rows if row.label == label]
        rates = [(users, rate.median) for users, row in rows if (rate := row.spread("output_tokens_per_s"))]
        waits = [(users, wait.median) for users, row in rows if (wait := row.spread("ttft_ms.p50"))]
        if len(rates) < 2:
            continue
        parts = [_rates(rates), *([_waits(waits)] if len(waits) > 1 else []), _limit(rates)]
        doubtful = " (figures in doubt: see the warnings)" if any(doubt(row) for _users, row in rows) else ""
        yield plain(f"{label}: {'; '.join(parts)}{doubtful}.")


def _rates(rates: Sequence[tuple[float, float]]) -> str:
    (fewest, one), (users, rate) = rates[0], max(rates, key=lambda entry: entry[1])
    least = "" if users == fewest else f", {number(one)} at {fewest:g}"
    return f"{number(rate)} output tokens/s at {_users(users)}{least}"


def _waits(waits: Sequence[tuple[float, float]]) -> str:
    values = [value for _users, value in waits]
    if max(values) <= STEADY * min(values):
        return f"the first token stays at {number(values[-1])} ms"
    most = _users(waits[-1][0])
    return f"the first token goes from {number(values[0])} ms to {number(values[-1])} ms at {most}"


def _limit(rates: Sequence[tuple[float, float]]) -> str:
    """Throughput that grew by little at the last step is at its limit there."""
    (fewer, before), (_most, last) = rates[-2:]
    if last < GROWS * before:
        return f"the limit was reached: more than {_users(fewer)} brought less than 10 % more"
    return "the limit was not reached"


def _users(count: float) -> str:
    return counted(int(count), "user")


def doubts_line(lines: Sequence[str]) -> str:
    """One line of all doubts at a load; "" without any."""
    return plain(f"in doubt: {'; '.join(lines)}", 600) if lines else ""
