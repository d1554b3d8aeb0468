"""What a probe concludes about the prefix cache, from shares of a prompt that were found again."""

import pytest

from harness.probe import cache
from harness.probe.exchange import Seen
from tests.unit.probe.answering import answered, asker, definition

PROMPT = 600
RESET = {"path": "/reset"}


class Cached:
    """Answers whose usage has the shares given, one after the other; without a share no count of them."""

    def __init__(self, *shares):
        self._shares = iter(shares)

    def __call__(self, body):
        share = next(self._shares)
        details = {} if share is None else {"prompt_tokens_details": {"cached_tokens": int(share * PROMPT)}}
        return answered(prompt_tokens=PROMPT, **details)


def found(answer, *, enabled=True, reset=None, thorough=True, done=True, **tables):
    """Of the cache as `cache.findings` sees it, with the first sending behind it."""
    tables |= {"prefix_cache": {"enabled": enabled, "reset": reset} if reset else {"enabled": enabled}}
    asked = asker(answer, definition(**tables), thorough=thorough)
    how = type("Result", (), {"done": done, "how": "POST /reset"})
    asked.server.told["reset"] = how
    prompt = cache.LongPrompt.new(asked)
    return {one.topic: one for one in cache.findings(prompt, answered(prompt_tokens=PROMPT))}


@pytest.mark.parametrize(
    ("enabled", "shares", "seen", "holds"),
    [
        (True, [0.9], "90% of a repeated prompt of 600 tokens was cached", True),
        (True, [0.4, 0.9], "90% of a repeated prompt of 600 tokens was cached", True),  # its slot was taken
        (True, [0.4, 0.4], "40% of a repeated prompt of 600 tokens was cached", False),
        (False, [0.9], "90% of a repeated prompt of 600 tokens was cached", False),
        (False, [0.0], "0% of a repeated prompt of 600 tokens was cached", True),
        (True, [None], "cached tokens are not reported", None),
    ],
)
def test_a_repeated_prompt_is_found_again_or_not(enabled, shares, seen, holds):
    one = found(Cached(*shares, 0.0), enabled=enabled)["prefix cache"]
    assert (one.seen, one.holds, one.matters) == (seen, holds, holds is False)
    assert one.declared == ("on" if enabled else "off")
    assert bool(one.then) is (holds is not True)


@pytest.mark.parametrize(
    ("before", "after", "cached"),
    [
        ({"cached_prompt_tokens": 100.0}, {"cached_prompt_tokens": 640.0}, 540),
        ({"output_tokens": 9.0}, {"output_tokens": 9.0, "cached_prompt_tokens": 540.0}, 540),
    ],
    ids=["both times", "from the first hit on"],
)
def test_counters_tell_what_usage_does_not(before, after, cached):
    """A fresh SGLang has no counter of cached tokens until it finds some."""
    counts = iter([before, after])
    asked = asker(Cached(None), definition())
    asked.server.counters = lambda: next(counts)
    assert cache.LongPrompt.new(asked).send()[1] == pytest.approx(cached / PROMPT)


@pytest.mark.parametrize("counts", [[None], [{}], [{"output_tokens": 9.0}] * 2])
def test_counters_without_cached_tokens_tell_nothing(counts):
    asked, given = asker(Cached(None), definition()), iter(counts)
    asked.server.counters = lambda: next(given)
    assert cache.LongPrompt.new(asked).send()[1] is None


def test_a_prompt_that_was_not_all_cached_is_not_a_hundred_per_cent():
    assert found(Cached(0.999))["prefix cache"].seen.startswith("99.8% of a repeated prompt")


@pytest.mark.parametrize(
    ("after", "leaves", "holds", "then"),
    [
        (0.0, "", True, ""),
        (0.9, "", False, "cells are not cold: their hit rate is compared with that of a cold start"),
        (0.9, "half of it", None, "cells are not cold: their hit rate is compared with that of a cold start"),
    ],
)
def test_a_reset_is_judged_by_what_is_found_after_it(after, leaves, holds, then):
    one = found(Cached(0.9, after), reset=RESET | {"leaves": leaves})["cache reset"]
    assert one.seen == f"90% cached before, {after:.0%} after POST /reset"
    assert (one.holds, one.then, one.matters) == (holds, then, holds is False)


def test_a_reset_that_is_refused_or_cannot_be_seen():
    refused = found(Cached(0.9), reset=RESET, done=False)["cache reset"]
    assert (refused.seen, refused.holds, refused.matters) == ("refused: POST /reset", False, True)
    unseen = found(Cached(0.4, 0.4, 0.0), reset=RESET)["cache reset"]
    assert (unseen.seen, unseen.holds) == ("accepted, not seen to work (POST /reset)", None)
    none = found(Cached(0.9))["cache reset"]
    assert (none.declared, none.seen, none.holds) == ("none", "not asked", None)
    assert "cache reset" not in found(Cached(0.0), enabled=False)


@pytest.mark.parametrize(("share", "holds"), [(0.05, True), (0.2, False), (None, None)])
def test_a_new_salt_finds_nothing(share, holds):
    salted = {"cache_salt": {"cache_salt": "{salt}"}}
    one = found(Cached(0.9, share, 0.0), dialect=salted)["cache salt"]
    assert (one.holds, one.matters) == (holds, holds is False)
    assert "cache salt" not in found(Cached(0.9, 0.0), dialect=salted, thorough=False)


def test_a_prompt_that_was_not_answered_says_nothing_of_the_cache():
    prompt = cache.LongPrompt.new(asker(answered()))
    (one,) = cache.findings(prompt, Seen(0, error="no answer"))
    assert (one.topic, one.seen, one.holds) == ("prefix cache", "no answer", None)


def test_each_long_prompt_is_new():
    asked = asker(answered())
    assert cache.LongPrompt.new(asked).text != cache.LongPrompt.new(asked).text
