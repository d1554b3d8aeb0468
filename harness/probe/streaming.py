"""How an answer streams, how long it is, and what happens to an unknown field."""

from collections.abc import Iterator
from math import inf

from harness.apis import Api
from harness.client.answer import NoAnswer
from harness.engines.speak.dialect import Chat
from harness.model import UNSET, Finding
from harness.model.numbers import counted
from harness.probe.asker import FORCED, FREE, Asker, user
from harness.probe.exchange import Seen
from harness.probe.finding import held
from harness.records.layout import UNKNOWN, EventKind
from harness.spec.dialect import Habits
from harness.spec.scenario import Request

COUNT = "Count from one to twenty in words."
_TOKENS = 16
_ONE_WORD = "Answer with the single word yes, and nothing else."
_FORCED_TOKENS = 32  # more than one word has
_SEVERAL = 1.1  # a token that ends inside a character waits for the next one
_LEAST_S = 20.0  # for a first stream
_TIMES = 40.0  # as long as the whole answer before it, which has a quarter of its tokens


def stream(asker: Asker) -> tuple[Seen, list[Finding]]:
    """An answer during which nothing else runs, and what it shows."""
    whole_s = asker.server.first_answer_s  # None: none was asked for
    most_s = inf if whole_s is None else max(_LEAST_S, _TIMES * whole_s)
    seen = asker.ask(COUNT, _TOKENS, FORCED, most_s)
    if seen.ok:
        return seen, list(_shown(seen, asker.dialect.habits, asker.api))
    found, then, status = refusal(seen), "nothing can be measured", seen.status or UNSET
    if seen.none_came is NoAnswer.LATE and whole_s is not None:
        found += f"; one that is no stream came after {whole_s:.1f} s"
    return seen, [Finding(asker.api.name, "answered", found, False, then, True, status)]


def _shown(seen: Seen, habits: Habits, api: Api) -> Iterator[Finding]:
    if seen.parsed.document:
        then = "TTFT is E2E, and ITL and TPOT are not known: compare E2E"
        yield Finding(api.name, "streamed", "one JSON document, not a stream", False, then, matters=True)
    else:
        yield Finding(api.name, "answered", f"{counted(seen.text_events, 'event')} with text", True)
    yield from _shape(seen, habits, api.end)
    yield from _usage(seen, habits)
    yield from _tokens_per_event(seen, habits)
    yield _reasoning("thinking off", seen, habits, wanted=False)


def _shape(seen: Seen, habits: Habits, end: str) -> Iterator[Finding]:
    yield held(
        "first event",
        habits.first_chunk,
        seen.first,
        more=f"{seen.lead_ms:.0f} ms ahead of the text" if seen.first == "role" else "",
        then="none needed: TTFT is taken at the first text",
        matters=False,
    )
    yield held(
        end,
        habits.done,
        seen.parsed.done,
        then="none needed: an answer is complete with its finish reason and its framing",
        matters=False,
    )
    owes_none = habits.done is False and habits.finish_reason is not True  # its framing is the end
    if owes_none or seen.finish_reason or seen.parsed.done or seen.parsed.document:
        yield held(
            "finish reason",
            habits.finish_reason,
            bool(seen.finish_reason),
            then=f"an answer without it and without {end} fails as unfinished",
            matters=False,
        )
    else:
        then = "every answer fails as unfinished: nothing can be measured"
        yield Finding("finish reason", f"yes, or {end}", "neither", False, then, matters=True)
    yield held(
        "comments",
        habits.comments,
        seen.has(EventKind.COMMENT) or (False if habits.comments is False else None),  # few silences are long
        then="none needed: comments are not text",
        matters=False,
    )


def _usage(seen: Seen, habits: Habits) -> Iterator[Finding]:
    never = seen.usage == "never"
    yield held(
        "usage block",
        habits.usage,
        seen.usage,
        then="output tokens are not known: token rates are null"
        if never
        else "none needed: it is found anywhere",
        matters=never,
    )
    cached = seen.count("cached_tokens") != UNKNOWN
    yield held(
        "cached tokens",
        habits.cached_tokens,
        cached,
        then="none needed"
        if cached
        else "the hit rate is taken from the engine's counters, where it has them",
        matters=not cached,
    )


def _tokens_per_event(seen: Seen, habits: Habits) -> Iterator[Finding]:
    tokens = seen.count("output_tokens") - seen.unseen_tokens
    if tokens == UNKNOWN or not seen.text_events:
        return
    silent = seen.silent_events
    each = tokens / (seen.text_events + silent)
    yield held(
        "tokens per event",
        habits.tokens_per_event,
        "several" if each > _SEVERAL else "one",
        more=f"{counted(tokens, 'token')} in {counted(seen.text_events, 'event')}"
        f"{f' and {silent} without text' if silent else ''}",
        then="gaps are between events, not tokens: compare TPOT, not ITL",
    )


def _reasoning(topic: str, seen: Seen, habits: Habits, *, wanted: bool) -> Finding:
    fields = sorted(seen.reasoning_fields())
    inline = "<think>" in seen.text
    if not fields and not inline:
        return Finding(topic, "", "no reasoning text", None if wanted else True)
    words = f"reasoning in {', '.join(fields)}" if fields else "reasoning inside the content"
    if not wanted:
        then = "TTFT and length include the reasoning; cells say so"
        return Finding(topic, "no reasoning text", words, False, then, matters=True)
    declared = habits.reasoning_field
    if declared is None or inline:
        return Finding(topic, declared or "", words, None)
    return held(topic, declared, ", ".join(fields), then="none needed: both names are read", matters=False)


def thinking(asker: Asker) -> Iterator[Finding]:
    """Switched on, where that is declared."""
    if asker.thorough and asker.dialect.thinking.on:
        seen = asker.ask(COUNT, _TOKENS, Request(exact_output=False, thinking="on"))
        if not seen.ok:
            yield refused("thinking on", "accepted", seen, "requests with thinking fail")
        else:
            yield _reasoning("thinking on", seen, asker.dialect.habits, wanted=True)


def exact_output(asker: Asker) -> Iterator[Finding]:
    """A one-word answer, asked for at many tokens."""
    topic = f"exactly {_FORCED_TOKENS} tokens"
    if not asker.dialect.exact_output:
        then = "lengths are as the model ends: compared per token"
        yield Finding(topic, "cannot", "not asked", None, then)
        return
    seen = asker.ask(_ONE_WORD, _FORCED_TOKENS, FORCED)
    tokens = seen.count("output_tokens")
    if not seen.ok:
        yield refused(topic, "yes", seen, "requests of exact length fail")
        return
    if tokens == UNKNOWN:
        yield Finding(topic, "yes", "no usage block to count by", None)
        return
    result, known = counted(tokens, "token"), True
    if asker.thorough:
        free = asker.ask(_ONE_WORD, _FORCED_TOKENS, FREE).count("output_tokens")
        result += f", {free} when not forced" if free != UNKNOWN else ""
        known = free != _FORCED_TOKENS  # else it would have come so long by itself
    right = tokens == _FORCED_TOKENS
    then = "" if right else "lengths differ from those asked for: cells are SUSPECT, compare per token"
    yield Finding(topic, "yes", result, right if known or not right else None, then, not right)


def unknown_field(asker: Asker) -> Iterator[Finding]:
    seen = asker.put(Chat((user(COUNT),), 1), added={"bench_unknown_field": True})
    if seen.ok:
        reaction: str | None = "ignored"
    else:
        reaction = "rejected" if seen.status in (400, 422) else None
    yield held(
        "unknown field",
        asker.dialect.habits.unknown_fields,
        reaction,
        more="" if seen.ok else refusal(seen),
        then="a field this engine does not know is "
        + ("ignored silently" if seen.ok else "an error: all requests fail"),
        matters=False,
    )


def refused(topic: str, declared: str, seen: Seen, then: str) -> Finding:
    """Judges an answer; where there was none at all, nothing is known."""
    answered = seen.status != 0
    return Finding(
        topic, declared, refusal(seen), False if answered else None, then if answered else "", answered
    )


def refusal(seen: Seen) -> str:
    """The status and what was wrong; without a status, what was wrong alone."""
    return f"{seen.status}: {seen.error or 'no text'}" if seen.status else seen.error
