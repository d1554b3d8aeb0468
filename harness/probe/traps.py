"""What makes figures unfair and shows in no single answer, such as output held back and streams cut off."""

import time
from collections.abc import Iterator
from functools import partial

from harness.engines.speak.dialect import Chat
from harness.host.cpus import waited_for_cpu_s
from harness.model import Finding
from harness.model.numbers import counted
from harness.probe.asker import FORCED, Asker, user
from harness.probe.cache import LongPrompt
from harness.probe.exchange import Seen
from harness.probe.streaming import refusal
from harness.probe.together import side_by_side
from harness.records.finish import Finish, finish_of
from harness.records.layout import UNKNOWN

_COUNT = "Count from one to five hundred in words."
_TOGETHER = 0.1  # of the mean gap: events closer than that were sent together
_TELLING_S = 0.003  # mean gap
_WHOLE = "all"  # begins the words for an answer that came in one read
_BURSTS = 0.3  # share of such gaps; a client that wakes late makes fewer
_ANSWERS = 3  # that must each show it: a machine that stands still now and then makes one or two
_OVERLOADED = 0.5  # share of the time in which something waited for a CPU: client and server take turns on it
_STREAMS, _STREAM_TOKENS = 3, 24
_LATE = 0.3  # of the time of an answer: when the next of them begins
_LAZY_S, _LAZY = 1.0, 10.0  # a first answer so much longer, and so many times as long, as the next
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_LIMIT_S = 10.0  # for an answer without max_tokens: it may be endless
_DEFAULT_TOKENS = 1024  # an answer that ends below was cut by a default
_ROOM, _KEPT = 0.8, 0.9  # share of the context that is filled; share of its tokens that must be counted


def held_back(asker: Asker, alone: Seen) -> Iterator[Finding]:
    """Whether events come as they are made; nothing if they are too few to tell."""
    first = _in_bursts(alone)
    if first is None:
        return
    topic, as_made = "events sent", "as they are made"
    again: str | None = first
    began_s, waited_s = time.monotonic(), waited_for_cpu_s()
    for _ in range(_ANSWERS - 1):
        again = again and _in_bursts(asker.ask(_COUNT, _STREAM_TOKENS, FORCED))
    if not again:
        yield Finding(topic, as_made, as_made, True)
        return
    waiting = (waited_for_cpu_s() - waited_s) / (time.monotonic() - began_s)
    if waiting > _OVERLOADED:
        yield Finding(topic, as_made, f"not known: tasks waited for a CPU {waiting:.0%} of the time", None)
    else:
        then = "ITL is that of the bursts, and TTFT may wait for one: compare TPOT"
        if again.startswith(_WHOLE):
            then = "TTFT is E2E, and ITL and TPOT are not known: compare E2E"
        yield Finding(topic, as_made, f"in bursts: {again}", False, then, matters=True)


def _in_bursts(seen: Seen) -> str | None:
    """Describes bursts in words; "" where there are none, None where they are too few, or quicker than a
    client wakes up.
    """
    gaps = seen.gaps_s
    mean = sum(gaps) / max(len(gaps), 1)
    if len(gaps) >= 8 and not mean:
        return f"{_WHOLE} {len(gaps) + 1} events at once"
    if len(gaps) < 8 or mean < _TELLING_S:
        return None
    together = sum(gap < _TOGETHER * mean for gap in gaps)
    if together < _BURSTS * len(gaps):
        return ""
    return f"{together} of {len(gaps)} gaps are of 0, the longest of {max(gaps) * 1e3:.0f} ms"


def interrupted(asker: Asker, alone: Seen) -> Iterator[Finding]:
    """Streams that begin one after the other, each while those before it run."""
    if not asker.thorough or not alone.ok or not alone.text_events:
        return
    length_s = alone.ttft_s + _STREAM_TOKENS * alone.tpot_s

    def late(number: int) -> Seen:
        time.sleep(number * _LATE * length_s / _STREAMS)
        return asker.ask(f"{_COUNT} Begin at {number + 1}.", _STREAM_TOKENS, FORCED)

    seen = side_by_side([partial(late, number) for number in range(_STREAMS)])
    topic, declared = f"{_STREAMS} streams at once", "each is whole"
    refused = [answer for answer in seen if not answer.ok]
    if refused:
        yield Finding(topic, declared, refusal(refused[0]), None)
        return
    cut = [answer for answer in seen if not answer.finish_reason and answer.text_events < _STREAM_TOKENS / 2]
    if cut and alone.finish_reason:
        events = counted(min(answer.text_events for answer in cut), "event")
        found = f"{len(cut)} of {_STREAMS} ended after {events}"
        then = "a new request ends those that run: only one at a time can be measured"
        yield Finding(topic, declared, found, False, then, matters=True)
    else:
        yield Finding(topic, declared, declared, True)


def not_followed(asker: Asker) -> Iterator[Finding]:
    """Settings that the server tells, where bench set them."""
    server = asker.server
    declared = server.definition.server.effective
    if not declared or not server.started_here:
        return
    info = server.info()
    for name, key in declared.items():
        wanted, found = _plain(server.definition.engine.values[name]), _plain(info.get(key, ""))
        holds = None if not found else wanted == found
        then = "cells are compared by what the server reports" if holds is False else ""
        yield Finding(f"setting {name}", wanted, found or "not reported", holds, then, matters=holds is False)


def _plain(value: object) -> str:
    return str(value).removeprefix("torch.").lower()


def lazy(asker: Asker, alone: Seen) -> Iterator[Finding]:
    """A first answer that brought the model in."""
    first_s = asker.server.first_answer_s
    if first_s is None or not alone.answer_s or asker.server.definition.server.ready == "generates":
        return
    usual_s = alone.answer_s
    late = first_s > usual_s + _LAZY_S and first_s > _LAZY * usual_s
    found = f"first answer after {first_s:.1f} s, a later one after {usual_s:.1f} s"
    then = "the model was loaded by the first request: none of them is measured" if late else ""
    yield Finding("loaded when ready", "yes", found, not late, then)


def default_length(asker: Asker) -> Iterator[Finding]:
    """What a client gets that names no limit; bench always names one."""
    if not asker.thorough:
        return
    seen = asker.put_without(Chat((user(_COUNT),), 1), _LIMITS, _LIMIT_S)
    tokens = seen.count("output_tokens") if seen.count("output_tokens") != UNKNOWN else seen.text_events
    short = seen.ok and finish_of(seen.finish_reason) is Finish.CUT and tokens < _DEFAULT_TOKENS
    found = f"cut off at {tokens} tokens" if short else "no default seen"
    then = "none needed: every request names one" if short else ""
    yield Finding("no max_tokens", "", found, None, then)


def cut_prompt(prompt: LongPrompt, first: Seen) -> Iterator[Finding]:
    """Whether a prompt that fits the declared context is read whole. `first`: the answer to the long
    prompt.
    """
    server = prompt.asker.server
    context = server.definition.engine.values.get("context_tokens")
    tokens = first.count("prompt_tokens")
    if not prompt.asker.thorough or context is None or not server.started_here or tokens <= 0:
        return
    lines = prompt.text.splitlines()
    wanted = int(_ROOM * int(context))
    repeated = lines * (wanted // tokens + 1)
    seen = prompt.asker.ask("\n".join(repeated[: len(lines) * wanted // tokens]), 1)
    counted = seen.count("prompt_tokens")
    topic, declared = "context", f"{int(context)} tokens"
    if not seen.ok:
        then = "longer prompts fail"
        yield Finding(topic, declared, refusal(seen), False if seen.status else None, then, bool(seen.status))
        return
    whole = counted >= _KEPT * wanted
    found = f"a prompt of about {wanted} tokens was read {'whole' if whole else f'as {counted}'}"
    then = "" if whole else "longer prompts are cut silently: they are other work"
    yield Finding(topic, declared, found, whole, then, not whole)
