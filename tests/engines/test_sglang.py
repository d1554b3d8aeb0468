"""Real SGLang on the CPU: its scheduler, radix cache, grammars and metrics, over native torch kernels."""

import pytest

from harness.engines.provide.install import installed
from harness.probe import examine
from harness.spec.backend_refs import load_backend
from tests.engines.answers import cached
from tests.engines.test_probe import LIMIT_S, TRAPS, differing, topics

pytestmark = pytest.mark.engine

SHAPES = ("json_schema", "regex", "choice", "grammar")


def test_sglang_serves_the_same_model_as_declared(start, ask, long_text):
    """One start for everything: it takes half a minute."""
    with start("sglang") as engine:
        package = installed(load_backend("sglang")).version
        assert engine.facts["package_version"] == engine.facts["server_version"] == package
        assert engine.facts["weights"]["track"] == "bf16-from-q4_1"
        assert engine.facts["info"]["max_total_num_tokens"] == 93_184, "as vLLM's two GiB of this model"
        assert engine.facts["info"]["attention_backend"] == "torch_native"
        assert engine.facts["caveat"] in engine.facts["known"]

        before = engine.counters()
        first, second = (ask(engine, long_text(1), question) for question in ("one", "two"))
        after = engine.counters()
        assert cached(first) < 8, "the opening of the chat template: the check of the start sent it too"
        assert cached(second) > 0.9 * second["usage"]["prompt_tokens"], "a radix cache needs no whole block"
        assert second["usage"]["completion_tokens"] == 8
        prompt = first["usage"]["prompt_tokens"] + second["usage"]["prompt_tokens"]
        assert after["prompt_tokens"] - before["prompt_tokens"] == prompt
        hits = after["cached_prompt_tokens"] - before.get("cached_prompt_tokens", 0)  # absent until the first
        assert hits == cached(first) + cached(second)
        assert after["output_tokens"] - before["output_tokens"] == 16

        assert engine.reset_prefix_cache().done
        assert cached(ask(engine, long_text(1), "three")) == 0
        assert engine.count_tokens(["", "word " * 300]) == [0, 301]

        found = examine(engine, limit_s=LIMIT_S)
        assert differing(found) == []
        seen = topics(found)
        for topic in (*(f"structured: {shape}" for shape in SHAPES), *TRAPS):
            assert seen[topic], topic
        assert seen["structured: json_object"] is not False, "this model fills all tokens with one object"


def test_a_variant_without_its_cache_processes_every_prompt(start, ask, long_text):
    with start("sglang@no-prefix-cache") as engine:
        for _ in range(2):
            answer = ask(engine, long_text(1), "one")
            assert not (answer["usage"].get("prompt_tokens_details") or {}).get("cached_tokens")
