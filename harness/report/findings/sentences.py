"""The findings of a load point in sentences. Knows no output format."""

from collections.abc import Iterator, Sequence

from harness.model import LoadPoint, Order, Place, Speedup, Summary, UnderLoad
from harness.model.measures import Measure, measure
from harness.model.numbers import as_given, counted, number, percent_figure, short
from harness.records.request_table import FREE
from harness.report.findings.classes import kinds_words
from harness.report.findings.conclusion import doubts, doubts_by_count, order, orders
from harness.report.findings.conclusion import under_load as courses
from harness.report.findings.goodput_words import goodput_words
from harness.report.view import Group, Row, groups
from harness.report.wording import are, listing, plain
from harness.verdicts.evidence import state_of

IN_WORDS = 3  # backends: with more, a list of values is harder to read than the table
NAMED = 2  # backends that a short claim names; of more it says how many
MANY = 5  # backends: the table beneath is read with the claim, which only counts
STEADY = 1.1  # a first token that varies by less between loads stays where it is, as throughput does
IN_DOUBT = "in doubt"
PARTS = "mean first token"
KINDS = "by kind"
OVERLOAD = "overload"
GOODPUT = "goodput"
HITS = "cache hits"
ADAPTERS = "adapters"
IMAGES = "images"
CONSTRAINT = "constraint"
# Claims that no verdict is about.
BEYOND = (PARTS, KINDS, OVERLOAD, GOODPUT, HITS, ADAPTERS, IMAGES, CONSTRAINT)
# Of the metrics that people ask for by what they wait for.
_WAITS = {
    "ttft_ms": "first token",
    "ttft_service_ms": "first token, from its sending",
    "itl_ms": "gap between tokens",
    "tpot_ms": "each further token",
    "e2e_ms": "whole answer",
    "session_ms": "whole session",
    "output_tokens_per_s": "output tokens/s",
    "output_chars_per_s": "output characters/s",
    "items_per_s": "items/s",
    "real_time_factor": "real-time factor",
    "audio_s_per_s": "seconds of audio/s",
    "input_tokens_per_s": "input tokens/s",
}

Claim = tuple[str, str]  # what it is about, such as `first token`; "" for a sentence that stands alone


def load_words(point: LoadPoint) -> str:
    """`8 users`: short enough for the head of a row."""
    if point.kind == "concurrency":
        return _users(point.value)
    if point.kind == "working-set":
        return f"{as_given(point.value)}× KV" if point.value else "no reuse"
    if point.kind == "unknown":
        return "unknown load"
    value = as_given(point.value)
    return f"{value} req/s" if point.kind == "rate" else f"{value}× pace"


def claims(summary: Summary, group: Group) -> list[Claim]:
    """Everything that was found at this load, most important first, doubts last."""
    found = list(_findings(summary, group))
    if len(group.rows) == 1:  # of several backends the table has them, or the notes
        alone = ((PARTS, _parts(group.rows[0])), (KINDS, kinds_words(group.rows[0])))
        found += [claim for claim in alone if claim[1]]
    if texts := [text for row in group.rows if (text := _overload(row))]:
        found.append((OVERLOAD, plain(f"{'; '.join(texts)}: latencies depend on how long was sent", 600)))
    if text := goodput_words(group):
        found.append((GOODPUT, text))
    if group.point.kind == "working-set":
        found.append((HITS, plain("; ".join(map(_hits, group.rows)), 600)))
    for name, words in ((ADAPTERS, _adapters), (IMAGES, _images), (CONSTRAINT, _constraint)):
        if texts := [text for row in group.rows if (text := words(row))]:
            found.append((name, plain("; ".join(texts), 600)))
    if lines := list(doubts(group)):
        few = lines if len(lines) <= NAMED else doubts_by_count(group)
        found.append((IN_DOUBT, plain("; ".join(few), 600)))
    return found


def _findings(summary: Summary, group: Group) -> Iterator[Claim]:
    mine = by_metric(summary, group)
    ranked = order(summary, group)
    if not mine or len(ranked.places) > 2:
        yield "", sentence(summary, group)
        mine.pop(waited(measure(ranked.metric)), None)
    reasons = {waited(measure(ranking.metric)): _one_refusal(ranking) for ranking in orders(summary, group)}
    for name, text in mine.items():
        why = reasons[name]
        yield name, plain(f"{text}: {why}" if why else text)
    # A search compares capacities, and has few runs at a load. Runs of an earlier version have `why` alone.
    searched = bool(summary.capacity)
    if not searched and len(ranked.pairs) == 1 and (pair := ranked.pairs[0]).state == "undecided":
        yield "undecided", pair.lacks or pair.why


def _one_refusal(ranking: Order) -> str:
    """The reason if no pair can be compared, for one and the same reason; else ""."""
    reasons = {pair.why if pair.state == "not comparable" else "" for pair in ranking.pairs}
    return reasons.pop() if len(reasons) == 1 else ""


def sentence(summary: Summary, group: Group) -> str:
    """The backend with the best median in the primary metric, and those it is separated from."""
    if not any(row.usable for row in group.rows):
        who = listing([row.label for row in group.rows])
        return plain(
            f"{who}: no valid measurement." if len(group.rows) <= IN_WORDS else "No valid measurement."
        )
    ranking = order(summary, group)
    if ranking.best is not None and any(pair.times for pair in ranking.about(ranking.best.label)):
        return plain(" ".join(_best(ranking, ranking.best, group.rows[0].unit)), 900)
    return plain(_why_nobody(ranking) + _measured(group, measure(ranking.metric)), 600)


def _best(ranking: Order, best: Place, unit: str) -> Iterator[str]:
    about = measure(ranking.metric)
    extreme = "Highest" if about.metric.better == "higher" else "Lowest"
    kind = f"{extreme} median" if best is ranking.places[0] else f"{extreme} comparable median"
    marked = f" ({IN_DOUBT})" if best.doubt else ""
    yield f"{kind} {about.name}: {best.label}{marked}, {_value(best.median or 0.0, about)}."
    if beaten := ranking.beaten_by(best.label):
        whole = len(beaten) <= IN_WORDS
        names = [f"{pair.behind} by {pair.span if whole else pair.factor}" for pair in beaten]
        yield f"Better than {listing(names)}."
    for pair in ranking.better_than(best.label):
        yield f"Over the geometric mean of the {unit}s {pair.ahead} is better by {pair.span}."
    for state, text in (
        ("undecided", f"Not separated from {{}} after {counted(best.repeats, unit)}."),
        ("same", "The same as {} within noise."),
        ("not comparable", "Not comparable with {}."),
    ):
        if others := ranking.others(best.label, state):
            every = len(others) == len(ranking.places) - 1 > IN_WORDS
            yield text.format(f"the other {len(others)}" if every else listing(others))


def by_metric(summary: Summary, group: Group) -> dict[str, str]:
    """`first token` → `vllm 5.08× faster (4.91 to 5.25)`, for each metric that was compared at this load.

    Empty if no pair has an interval.
    """
    found = orders(summary, group)
    if not any(pair.times for ranking in found for pair in ranking.pairs):
        return {}
    said_of: dict[str, str] = {}
    sentence = ""
    for ranking in found:
        left_out = next((pair.left_out for pair in ranking.pairs), "") if len(ranking.pairs) == 1 else ""
        more = f" ({left_out})" if left_out and left_out != sentence else ""
        sentence = left_out or sentence
        said_of[waited(measure(ranking.metric))] = plain(f"{_in_direction(ranking)}{more}")
    return said_of


def waited(shown: Measure) -> str:
    """What a person waits for, such as `first token`; for other metrics their short name."""
    name = _WAITS.get(shown.metric.name)
    if name is None:
        return shown.name
    statistic = f", {shown.statistic}" if shown.statistic not in ("", "p50") else ""
    return f"{name}{shown.whose}{statistic}"


def _in_direction(ranking: Order) -> str:
    about = measure(ranking.metric)
    if len(ranking.places) == 2 and len(ranking.pairs) == 1:
        return pair_words(ranking.pairs[0], about)
    best = ranking.best
    if best is None:
        return "no figure"
    marked = f" ({IN_DOUBT})" if best.doubt and not all(standing.doubt for standing in ranking.places) else ""
    value = f"{best.label}{marked} {_value(best.median or 0.0, about)}"
    if not ranking.about(best.label):
        return f"{value}, not compared with the others"
    if ranking.beats_all(best.label):
        return f"{value}, better than all others"
    behind = [pair.behind for pair in ranking.beaten_by(best.label)]
    parts = [f"better than {_few(behind, ranking)}"] if behind else []
    parts += [
        f"{pair.ahead} is better over the geometric mean of the repeats"
        for pair in ranking.better_than(best.label)
    ]
    for state, text in (
        ("undecided", "not separated from"),
        ("same", "the same within noise as"),
        ("not comparable", "not comparable with"),
    ):
        if others := ranking.others(best.label, state):
            parts.append(f"{text} {_few(others, ranking)}")
    return ", ".join([value, *parts])


def _few(names: Sequence[str], ranking: Order) -> str:
    if len(names) <= NAMED and len(ranking.places) < MANY:
        return listing(names)
    return counted(len(names), "other")


def pair_words(pair: Speedup, shown: Measure) -> str:
    """`vllm 5.08× faster (4.91 to 5.25)`, `vllm 2.44× (0.96 to 6.2), undecided`, `the same within noise`."""
    if pair.state == "separated":
        return f"{pair.ahead} {pair.span.replace(' ', f' {shown.ways[0]} ', 1)}" if pair.times else pair.ahead
    if pair.state == "same":
        return "the same within noise"
    if pair.state == "undecided" and pair.times:
        return f"{pair.leaning(pair.ahead)}, undecided"
    return pair.state


def _why_nobody(ranking: Order) -> str:
    """Nothing if runs are missing: the page says so once."""
    states = {pair.state for pair in ranking.pairs}
    if states == {"not comparable"}:
        reasons = dict.fromkeys(pair.why for pair in ranking.pairs)
        return f"Not comparable in {measure(ranking.metric).name}: {'; '.join(reasons)}. "
    return ""


def _measured(group: Group, shown: Measure) -> str:
    if len(group.rows) <= IN_WORDS:
        return f"{'; '.join(map(_words, group.rows))}."
    values = [(value, row.label) for row in group.rows if (value := row.median(shown.path)) is not None]
    if not values:
        return "No valid measurement."
    (low, lowest), (high, other) = min(values), max(values)
    return f"{shown.name} from {_value(low, shown)} ({lowest}) to {_value(high, shown)} ({other})."


def _words(row: Row) -> str:
    if not row.usable:
        return f"{row.label}: no valid measurement"
    for name in ("items_per_s", "audio_s_per_s"):  # answers come whole: there is no first token
        if each := row.spread(name):
            whole = row.spread("e2e_ms.p50")
            wait = f"whole answer after {number(whole.median)} ms (median), " if whole else ""
            return f"{row.label}: {wait}{number(each.median)} {_WAITS[name]}"
    first, rate = row.spread("ttft_ms.p50"), row.spread("output_tokens_per_s")
    wait = f"first token after {number(first.median)} ms" if first else "time to first token not known"
    speed = f"{number(rate.median)} output tokens/s" if rate else "token rate not known"
    return f"{row.label}: {wait} (median), {speed}" if first else f"{row.label}: {wait}, {speed}"


def _value(value: float, shown: Measure) -> str:
    return shown.with_unit(shown.figure(value))


def under_load(summary: Summary) -> Iterator[str]:
    """Throughput and first token of each backend over the users: `155 tok/s at 8 users, 19 at 1; …`.

    Nothing if fewer than two numbers of users have a figure. A capacity says itself where a limit is.
    """
    for course in courses(summary):
        rates = _known(course.users, course.output_tokens_per_s)
        waits = _known(course.users, course.first_token_ms)
        if len(rates) < 2:
            continue
        first = [_waits(waits)] if len(waits) > 1 else []
        limit = () if summary.capacity else _limit(course)
        parts = [_rates(rates), *first, *limit, *_cut_short(summary, course)]
        doubtful = f" (figures {IN_DOUBT}: see the warnings)" if course.in_doubt else ""
        yield plain(f"{course.label}: {'; '.join(parts)}{doubtful}.")


def _known(users: Sequence[float], values: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(count, value) for count, value in zip(users, values, strict=True) if value is not None]


def _rates(rates: Sequence[tuple[float, float]]) -> str:
    (fewest, fewest_rate), (users, rate) = rates[0], max(rates, key=lambda entry: entry[1])
    least = "" if users == fewest else f", {number(fewest_rate)} at {as_given(fewest)}"
    return f"{number(rate)} output tokens/s at {_users(users)}{least}"


def _waits(waits: Sequence[tuple[float, float]]) -> str:
    values = [value for _count, value in waits]
    if max(values) <= STEADY * min(values):
        return f"the first token stays at {number(values[-1])} ms"
    ends = values[0], values[-1]
    if max(values) > STEADY * max(ends) or STEADY * min(values) < min(ends):
        return f"the first token takes {number(min(values))} to {number(max(values))} ms"
    return f"the first token goes from {number(ends[0])} ms to {number(ends[1])} ms at {_users(waits[-1][0])}"


def _limit(course: UnderLoad) -> Iterator[str]:
    """Nothing if the loads do not tell."""
    if course.limit_users is not None:
        yield f"the limit was reached: more than {_users(course.limit_users)} brought less than 10% more"
    elif course.limit_reached is False:
        yield "the limit was not reached"


def _cut_short(summary: Summary, course: UnderLoad) -> Iterator[str]:
    """Yields the loads that have a row in the table and no part in the course."""
    left_out = [
        _users(group.point.value)
        for group in groups(summary)
        if group.point.kind == "concurrency" and group.point.value not in course.users
        if any(row.label == course.label for row in group.rows)
    ]
    if left_out:
        yield f"cut short and left out: {listing(left_out)}"


def _users(count: float) -> str:
    return counted(int(count), "user")


def _parts(row: Row) -> str:
    """`446 ms (queue 221, engine 123, outside 102)`; "" if not known."""
    mean, queue, engine, rest = (
        row.median(f"ttft_parts.{name}") for name in ("client_ms", "queue_ms", "engine_ms", "rest_ms")
    )
    if mean is None or engine is None or rest is None:
        return ""
    waiting = "" if queue is None else f"queue {number(queue)}, "
    return plain(f"{number(mean)} ms ({waiting}engine {number(engine)}, outside {number(rest)})")


def _overload(row: Row) -> str:
    """`vllm did not keep up, each second of sending adds 0.11 s to the answers`; "" if most repeats did."""
    behind = [cell for cell in row.usable if state_of(cell) == "unstable"]
    if 2 * len(behind) <= len(row.usable):
        return ""
    return f"{row.label} did not keep up, {behind[0].state_why}"


def _hits(row: Row) -> str:
    """`vllm 85.0%, of which 60.0 came back into the KV cache`."""
    hits, host = row.spread("prefix_cache_hit_rate"), row.spread("host_cache_hit_rate")
    if hits is None:
        return f"{row.label} {row.why_unknown('prefix_cache_hit_rate')}"
    behind = (
        f", of which {percent_figure(host.median)} came back into the KV cache" if host and host.high else ""
    )
    return f"{row.label} {percent_figure(hits.median)}%{behind}"


def _adapters(row: Row) -> str:
    """`vllm 1.3× the base model's first token, 1.1× its further ones, 120 ms to load`."""
    first, later = row.spread("adapters.ttft_over_base"), row.spread("adapters.tpot_over_base")
    swap, swaps = row.spread("adapters.swap_ms"), row.spread("adapters.swaps")
    parts = [f"{number(first.median)}× the base model's first token"] if first else []
    parts += [f"{number(later.median)}× its further ones"] if later else []
    if swap and swaps:
        planned = row.usable[0].requests.planned
        loads = f"{short(swaps.median)} of {counted(planned, 'request')}"
        parts.append(f"{number(swap.median)} ms more to load one ({loads})")
    return f"{row.label} {', '.join(parts)}" if parts else ""


def _images(row: Row) -> str:
    """Words for images: `vllm 41 ms for each fresh one, 3 ms repeated`, by sort where there are several."""
    sorts = dict.fromkeys(sort for cell in row.usable if cell.images for sort in cell.images.ms_by_sort)
    found = [(sort, row.spread(f"images.ms_by_sort.{sort}")) for sort in sorts]
    parts = [f"{number(spread.median)} ms for each of {sort}" for sort, spread in found if spread]
    return f"{row.label} {'; '.join(parts)}" if parts else ""


def _constraint(row: Row) -> str:
    """`vllm 1.25× the further token of a free answer, first token 120 ms at first use of a schema`."""
    ratio = row.median("constraint.tpot_ratio")
    first, later = (row.median(f"constraint.{key}") for key in ("first_use_ttft_ms", "later_ttft_ms"))
    parts = [] if ratio is None else [f"{number(ratio)}× the further token of a free answer"]
    if first is not None:
        then = "" if later is None else f", {number(later)} ms at a later one"
        parts.append(f"first token {number(first)} ms at first use of a schema{then}")
    unasked = {
        kind
        for cell in row.usable
        for kind, counts in (cell.answers.checks if cell.answers else {}).get("structured", {}).items()
        if not counts["constrained"] and kind != FREE
    }
    if unasked:
        names = listing(sorted(unasked))
        parts.append(f"{names} could not be asked and {are(len(unasked))} not in the valid form")
    return f"{row.label} {', '.join(parts)}" if parts else ""


def doubts_line(lines: Sequence[str]) -> str:
    """All doubts at a load in one line; "" if there are none."""
    return plain(f"{IN_DOUBT}: {'; '.join(lines)}", 600) if lines else ""
