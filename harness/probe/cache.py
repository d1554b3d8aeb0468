"""Whether the prefix cache is used, reported and emptied: one long prompt, sent again and again."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from harness.engines.speak.dialect import Chat
from harness.model import Finding
from harness.model.numbers import percent_apart
from harness.probe.asker import Asker, user
from harness.probe.exchange import Seen
from harness.probe.streaming import refusal
from harness.records.layout import UNKNOWN

_LINES = 60  # about 600 tokens: several of the largest blocks that engines cache in
_CACHED = "cached_prompt_tokens"  # a counter that some engines show from their first hit on
_HIT, _MISS = 0.5, 0.1  # shares of the prompt: more is found again, less is the template's own


@dataclass(slots=True)
class LongPrompt:
    """New to every server, and as long for each of them."""

    asker: Asker
    text: str

    @classmethod
    def new(cls, asker: Asker) -> "LongPrompt":
        lines = [f"Line {number} of this ledger says nothing of the others." for number in range(_LINES)]
        return cls(asker, f"{secrets.token_hex(8)}\n" + "\n".join(lines))

    def send(self, salt: str = "") -> tuple[Seen, float | None]:
        """The answer, and the share of the prompt that was found cached.

        None where neither the answer nor the metrics say it.
        """
        before = self.asker.server.counters()
        seen = self.asker.put(Chat((user(self.text),), 1, salt=salt))
        prompt, cached = seen.count("prompt_tokens"), seen.count("cached_tokens")
        if cached == UNKNOWN and before:
            after = (self.asker.server.counters() or {}).get(_CACHED)
            cached = UNKNOWN if after is None else round(after - before.get(_CACHED, 0.0))
        return seen, cached / prompt if cached != UNKNOWN and prompt > 0 else None


def findings(prompt: LongPrompt, first: Seen) -> Iterator[Finding]:
    """`first` is the answer to the prompt's first sending. The last finding leaves the cache empty."""
    server = prompt.asker.server
    declared = server.definition.prefix_cache
    if not first.ok:
        yield Finding("prefix cache", "", refusal(first), None)
        return
    seen, share = prompt.send()
    if share is not None and share < _HIT and declared.enabled is not False:
        seen, share = prompt.send()  # what was asked during the first sending may have taken its slot
    if share is None:
        then = "the cache state of cells cannot be verified"
        words = "cached tokens are not reported" if seen.ok else refusal(seen)
        yield Finding("prefix cache", _on(declared.enabled), words, None, then)
    else:
        used = share >= _HIT
        differs = declared.enabled is not None and used != declared.enabled
        yield Finding(
            "prefix cache",
            _on(declared.enabled),
            f"{_percent(share)} of a repeated prompt of {seen.count('prompt_tokens')} tokens was cached",
            None if declared.enabled is None else used == declared.enabled,
            "cells are measured with it as it is: compare hit rates" if differs else "",
            differs,
        )
    if not declared.enabled:
        return
    if prompt.asker.thorough and prompt.asker.dialect.cache_salt:
        yield _salt(prompt)
    yield _reset(prompt, before=share)


def _salt(prompt: LongPrompt) -> Finding:
    seen, share = prompt.send(salt=secrets.token_hex(8))
    if not seen.ok or share is None:
        return Finding("cache salt", "yes", "cannot be seen" if seen.ok else refusal(seen), None)
    apart = share <= _MISS
    then = "" if apart else "a salt does not keep cells apart here"
    return Finding("cache salt", "yes", f"{_percent(share)} cached under a new salt", apart, then, not apart)


def _reset(prompt: LongPrompt, before: float | None) -> Finding:
    server = prompt.asker.server
    declared = server.definition.prefix_cache.reset
    if declared is None:
        return Finding(
            "cache reset", "none", "not asked", None, "cold cells restart the engine, or are salted"
        )
    done = server.reset_prefix_cache()
    if not done.done:
        then = "cold cells cannot be had from a reset: restart the server for each"
        return Finding("cache reset", "works", f"refused: {done.how}", False, then, matters=True)
    after, share = prompt.send()
    server.reset_prefix_cache()
    if share is None or before is None or before < _HIT:
        why = done.how if after.ok else refusal(after)
        return Finding("cache reset", "works", f"accepted, not seen to work ({why})", None)
    gone = share <= _MISS
    then = "" if gone else "cells are not cold: their hit rate is compared with that of a cold start"
    seen = f"{_percent(before)} cached before, {_percent(share)} after {done.how}"
    holds = None if declared.leaves and not gone else gone  # what is left was declared too
    return Finding("cache reset", "works", seen, holds, then, matters=holds is False)


def _percent(share: float) -> str:
    return f"{percent_apart(share)}%"


def _on(enabled: bool | None) -> str:
    return "" if enabled is None else "on" if enabled else "off"
