"""Prompts that share too little for a warm cache, found before a server runs."""

import pytest

from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare


def warm(scenario, **given):
    overrides = {"cache.state": "warm", **{key.replace("__", "."): value for key, value in given.items()}}
    return prepare(RunOptions(scenario, "truth", overrides=overrides, profile="cpu"))


def test_a_warm_cache_that_would_hold_most_prompts_is_refused_at_once():
    with pytest.raises(SpecError, match="35 of 36 prompts begin as none before them") as caught:
        warm("rag")
    assert caught.value.where == "cache.state"


def test_adapters_keep_what_they_share_apart():
    load = {"load__requests": 8, "load__concurrency": [1], "load__warmup_requests": 0}
    few = {"prompts__groups": 2, "prompts__turns": 1, **load}
    assert warm("shared-prefix", **few)
    with pytest.raises(SpecError, match="8 of 8 prompts begin as none before them"):
        warm("shared-prefix", **few, lora__adapters=8, lora__base=False)


@pytest.mark.parametrize("scenario", ["shared-prefix", "fixed-length", "prompt-file", "kv-working-set"])
def test_others_are_taken_as_far_as_they_are_known(scenario):
    assert warm(scenario).scenario.cache.state == "warm"
