"""Differences that the cells themselves show: in their answers, their caches, their prompts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.model import (
    WITHOUT_TEXT,
    CellResult,
    Distortion,
    IssueCode,
    LoadPoint,
    OutputText,
    PromptTokens,
    Unequal,
    distorted_by,
)
from harness.model.metric_table import METRICS, family
from harness.model.numbers import digits_apart, fixed, percent_apart, short

Group = Mapping[str, CellResult]  # by label, of one load point and repeat

# Relative differences: above the first they decide, between both they are shown.
MATTERS = 0.05
SHOWN = 0.005
CHANCE, SURE = 2.0, 3.5  # standard errors: what chance explains, and beyond what it hardly can
IGNORED = 0.5  # share of valid answers below which a constraint was not enforced
_OF_STREAM = tuple(metric.name for metric in family("latency") if metric.of_text)
# Doubts about the answers of one side that leave nothing to compare: what they do, and the metrics; (): all.
_OF_ANSWERS = (
    (IssueCode.NOT_STREAMED, "come whole", _OF_STREAM),
    (IssueCode.PROMPT_ECHOED, "hold their prompts", ()),
    (IssueCode.ERRORS_AS_ANSWERS, "are errors", ()),
    (IssueCode.ANSWERS_SAME, "are one text", ()),
    (IssueCode.ONE_TOKEN_REPEATED, "are one token over and over", ()),
)


def measured(group: Group) -> Iterator[Unequal]:
    yield from _cache_state(group)
    yield from _prompt_tokens(group)
    yield from _output_length(group)
    yield from _sessions(group)
    yield from _tokens_per_event(group)
    yield from _answers(group)
    yield from _usage(group)
    yield from _text(group)
    yield from unasked({label: cell.conditions.unsupported for label, cell in group.items()})
    yield from _shapes_kept(group)
    yield from _agreement(group)
    yield from _definitions(group)


def listed(values: Mapping[str, object]) -> str:
    """`16 (a, b), 8 (c)`."""
    names: dict[Any, list[str]] = {}
    for label, value in values.items():
        names.setdefault(value, []).append(label)
    return ", ".join(f"{value} ({', '.join(labels)})" for value, labels in names.items())


def _figures(values: Mapping[str, float], digits: int, shown: Callable[[float, int], str] = fixed) -> str:
    """Lists them with so many digits, or with as many as tell the least from the most."""
    digits = digits_apart(min(values.values()), max(values.values()), least=digits, shown=shown)
    return listed({label: shown(value, digits) for label, value in values.items()})


def _cache_state(group: Group) -> Iterator[Unequal]:
    """A state that was found in some and not in others decides; one that cannot be seen is shown."""
    caches = {label: cell.conditions.cache for label, cell in group.items()}
    known = {label: cache for label, cache in caches.items() if cache and cache.requested != "any"}
    states = {cache.holds for cache in known.values()}
    if len(states) < 2:
        return
    words = {True: "yes", False: "no", None: "not known"}
    listing = listed({label: words[cache.holds] for label, cache in known.items()})
    what = "prefix cache in the state that was asked for"
    yield Unequal("cache-state", tuple(known), f"{what}: {listing}", False in states, what=what)


def _prompt_tokens(group: Group) -> Iterator[Unequal]:
    counts = {label: cell.conditions.prompt_tokens for label, cell in group.items()}
    known = {label: count for label, count in counts.items() if count and count.mean is not None}
    means = {label: count.mean for label, count in known.items() if count.mean is not None}
    foreign = any(cell.imported for cell in group.values())  # nobody knows which chats those were
    if len(means) > 1 and _differ(known, foreign):
        spread = _spread(means.values())
        words = f"{_figures(means, 1)}{'' if spread else ' on average, others in single chats'}"
        what = "prompt tokens" if foreign else "prompt tokens of the same chats"
        causes = "" if foreign else " (another tokenizer or chat template, or a prompt that was cut)"
        yield Unequal("prompt-tokens", tuple(known), f"{what}: {words}", spread > MATTERS, what=what + causes)


def _differ(known: Mapping[str, PromptTokens], foreign: bool) -> bool:
    """Compares by every chat where all are known, else by the first few that both know, or by the means
    where the file of another tool (`foreign`) has no chats.
    """
    digests = {count.sha256 for count in known.values()}
    if None not in digests:
        return len(digests) > 1
    if foreign and not all(any(count.first) for count in known.values()):
        return _spread([count.mean for count in known.values()]) > SHOWN
    columns = zip(*(count.first for count in known.values()), strict=False)
    return any(len({count for count in column if count is not None}) > 1 for column in columns)


def _output_length(group: Group) -> Iterator[Unequal]:
    """A count that cannot be right says nothing of the length."""
    right = {label: cell for label, cell in group.items() if label not in _miscounted(group)}
    means = {label: cell.conditions.output_tokens_mean for label, cell in right.items()}
    known = {label: mean for label, mean in means.items() if mean is not None}
    if len(known) > 1 and (spread := _spread(known.values())) > SHOWN:
        alone = all(cell.point == LoadPoint("concurrency", 1) for cell in group.values())
        # Longer answers of the others are what a first token waits behind.
        metrics = distorted_by("output-length", *(() if alone else ("queued-output-length",)))
        what = "tokens per answer"
        text = f"{what}: {_figures(known, 1)}"
        yield Unequal("output-length", tuple(known), text, spread > MATTERS, metrics, spread, what)


def _sessions(group: Group) -> Iterator[Unequal]:
    """The end of a cell cuts off more of the long sessions where an engine is slow."""
    counts = {label: cell.sessions for label, cell in group.items()}
    known = {label: count.calls_mean for label, count in counts.items() if count and count.calls_mean}
    if len(known) > 1 and (spread := _spread(known.values())) > SHOWN:
        what = "calls of a whole session"
        text = f"{what}: {_figures(known, 1)}"
        yield Unequal("session-calls", tuple(known), text, spread > MATTERS, ("session_ms",), spread, what)


def _tokens_per_event(group: Group) -> Iterator[Unequal]:
    """A gap between events of several tokens is not a gap between tokens."""
    sizes = {label: cell.output_tokens.tokens_per_event for label, cell in group.items()}
    known = {label: size for label, size in sizes.items() if size is not None}
    if len(known) > 1 and _spread(known.values()) > MATTERS:
        what = "tokens per event"
        text = f"{what}: {_figures(known, 2)}"
        yield Unequal(
            "tokens-per-event", tuple(known), text, True, distorted_by("tokens-per-event"), what=what
        )


def _usage(group: Group) -> Iterator[Unequal]:
    """Tokens that were miscounted are not a unit of speed."""
    if wrong := _miscounted(group):
        text = "; ".join(f"usage of {label}: {measured}" for label, measured in wrong.items())
        metrics = (*distorted_by("token-count"), "prefix_cache_hit_rate")
        what = f"usage of {', '.join(wrong)}"
        yield Unequal("usage-implausible", tuple(wrong), text, True, metrics, what=what)


def _answers(group: Group) -> Iterator[Unequal]:
    """A first token that comes with the whole answer cannot be compared with one of a stream. Nor can answers
    that are worth nothing with others: a cache or a draft model makes them fast.
    """
    for code, words, metrics in _OF_ANSWERS:
        found = _reasons(group, code)
        if found and len(found) < len(group):
            what = f"answers of {', '.join(found)} that {words}"
            named = "; ".join(f"{label} ({counted})" for label, counted in found.items())
            yield Unequal(code, tuple(found), f"answers {words}: {named}", True, metrics, what=what)


def _miscounted(group: Group) -> dict[str, str]:
    """The reason, by label, that the server's count cannot be that of its answers."""
    return _reasons(group, IssueCode.USAGE_IMPLAUSIBLE)


def _reasons(group: Group, code: IssueCode) -> dict[str, str]:
    return {
        label: reason.measured
        for label, cell in group.items()
        for reason in cell.validity.reasons
        if reason.code == code
    }


def _text(group: Group) -> Iterator[Unequal]:
    """Compares answers of one model, by whose tokenizer equal text is equal tokens: characters per token
    and per answer.

    Other weights of it say other things: where several are known, only equal weights are compared.

    Texts differ by chance too. What two standard errors do not explain widens the floor of a verdict, and
    what is also more than MATTERS beyond 3.5 of them refuses it.
    """
    by_model: dict[str | None, dict[str, OutputText]] = {}
    several = len({cell.track for cell in group.values()} - {None}) > 1
    for label, cell in group.items():
        if cell.conditions.output_text is not None:
            by_model.setdefault(cell.track if several else None, {})[label] = cell.conditions.output_text
    for texts in by_model.values():
        tokens = {
            label: (text.per_token, text.per_token_error)
            for label, text in texts.items()
            if text.per_token is not None and text.per_token_error is not None
        }
        answers = {label: (text.per_answer, text.per_answer_error) for label, text in texts.items()}
        yield from _apart("characters-per-token", "characters per token", tokens, ("token-count",))
        yield from _apart("output-text", "characters per answer", answers, ("output-text",))


def _apart(
    code: str, title: str, values: Mapping[str, tuple[float, float]], causes: tuple[Distortion, ...]
) -> Iterator[Unequal]:
    """Compares by label a mean and its standard error; nothing where chance explains the largest
    difference. Text against none is no ratio, so no floor is wide enough for it.
    """
    if len(values) < 2:
        return
    (least, least_error), (most, most_error) = (pick(values.values()) for pick in (min, max))
    if least > 0:
        error = ((least_error / least) ** 2 + (most_error / most) ** 2) ** 0.5
        spread = most / least - 1
        apart = spread - CHANCE * error
        differ, matters = apart > SHOWN, spread > MATTERS and spread > SURE * error
    else:
        differ = matters = most > CHANCE * most_error
        apart = 0.0
    if differ:
        text = f"{title}: {_figures({label: mean for label, (mean, _) in values.items()}, 3, short)}"
        yield Unequal(code, tuple(values), text, matters, distorted_by(*causes), apart, title)


def unasked(missing: Mapping[str, Mapping[str, str]]) -> Iterator[Unequal]:
    """Yields what some were asked and others could not be. Lengths have their own rule.

    `missing`: by label, names of what the engine has no field for, each with what that means.
    """
    names = dict.fromkeys(
        name for left_out in missing.values() for name in left_out if name != "exact_output"
    )
    for name in names:
        without = tuple(label for label, left_out in missing.items() if name in left_out)
        if len(without) < len(missing):
            what = f"{name} could not be asked of {', '.join(without)}"
            text = f"{what}: {missing[without[0]][name]}"
            yield Unequal(f"unsupported-{name}", without, text, name != "seed", what=what)


def _shapes_kept(group: Group) -> Iterator[Unequal]:
    """A shape that one engine enforces and another accepts and ignores."""
    rates: dict[str, dict[str, float]] = {}
    for label, cell in group.items():
        for shape, counts in (cell.answers.checks.get("structured", {}) if cell.answers else {}).items():
            if counts["constrained"] and counts["rate"] is not None:
                rates.setdefault(shape, {})[label] = counts["rate"]
    for shape, known in rates.items():
        if min(known.values()) < IGNORED <= max(known.values()):
            words = listed({label: f"{percent_apart(rate, IGNORED)}%" for label, rate in known.items()})
            what = f"valid answers to {shape}"
            yield Unequal(f"shape-{shape}", tuple(known), f"{what}: {words}", True, what=what)


def _agreement(group: Group) -> Iterator[Unequal]:
    """Engines that serve the same weights and are not right in the same questions do other work."""
    for label, cell in group.items():
        for other, text in cell.conditions.disagrees.items():
            partner = next((name for name in group if _same_run(label, name, other)), None)
            if partner is not None:
                tracks = {cell.track, group[partner].track}
                same_weights = len(tracks) == 1 and None not in tracks
                whole = cell.conditions.api in WITHOUT_TEXT  # a faster wrong vector is worth nothing
                matters = same_weights or whole
                metrics = () if whole else distorted_by("answers")
                what = "answers disagree"
                text = f"{what}: {text}"
                yield Unequal("agreement", (label, partner), text, matters, metrics, what=what)


def _definitions(group: Group) -> Iterator[Unequal]:
    """Compares, of imported figures, what they mean where that is not the meaning here, whatever tool says
    so; and whose client it was.
    """
    meant = {label: cell.imported.definitions if cell.imported else {} for label, cell in group.items()}
    for metric in dict.fromkeys(metric for words in meant.values() for metric in words):
        values = {label: words.get(metric, "as defined here") for label, words in meant.items()}
        if len({words.partition(": ")[2] or words for words in values.values()}) > 1:
            name = METRICS[metric].short if metric in METRICS else metric
            text = f"{name} is not the same thing: {listed(values)}"
            yield Unequal(
                f"definition-{metric}", tuple(group), text, True, (metric,), what=f"meaning of {name}"
            )
    clients = {
        label: f"{cell.imported.source} ({cell.imported.level})" if cell.imported else "bench"
        for label, cell in group.items()
    }
    if len(set(clients.values())) > 1:
        yield Unequal("client", tuple(group), f"measured by: {listed(clients)}", False)


def _same_run(label: str, name: str, other: str) -> bool:
    """Labels of a comparison of runs begin with the run: `run/vllm`."""
    own, slash, _ = label.rpartition("/")
    return name == f"{own}{slash}{other}"


def _spread(values: Any) -> float:
    """Relative to the smallest."""
    numbers = list(values)
    return (max(numbers) - min(numbers)) / min(numbers) if min(numbers) > 0 else float(max(numbers) > 0)
