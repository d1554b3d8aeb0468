"""Real vLLM, on the CPU where there is no GPU, on weights converted from the same file llama.cpp reads."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.engines.provide.install import installed
from harness.engines.provide.weights import Weights
from harness.engines.start.command import build_command, configured
from harness.spec.backend_refs import apply_variant, load_backend
from tests.engines.answers import cached
from tests.engines.capture import of, shapes, stored

pytestmark = pytest.mark.engine


def test_vllm_serves_the_same_model(start, ask, long_text):
    """One start for everything: it takes half a minute."""
    with start("vllm") as engine:
        assert shapes(of(engine)["answers"]) == shapes(stored("vllm")["answers"])
        facts = engine.facts
        package = installed(load_backend("vllm")).version
        assert facts["package_version"] == package
        assert facts["server_version"].startswith(package)
        assert facts["weights"]["track"] == "bf16-from-q4_1"
        assert len(facts["weights"]["tokenizer_sha256"]) == 64

        completion = {
            "model": "bench",
            "prompt": "The capital of France is",
            "max_tokens": 4,
            "temperature": 0,
        }
        assert (
            "Paris"
            in engine._ask("POST", "/v1/completions", json=completion).document()["choices"][0]["text"]
        )

        before = engine.counters()
        first, second = (ask(engine, long_text(1), question) for question in ("one", "two"))
        after = engine.counters()
        assert cached(first) == 0
        assert cached(second) > 0.6 * second["usage"]["prompt_tokens"]
        assert second["usage"]["completion_tokens"] == 8
        prompt = first["usage"]["prompt_tokens"] + second["usage"]["prompt_tokens"]
        assert after["prompt_tokens"] - before["prompt_tokens"] == prompt
        assert after["cached_prompt_tokens"] - before["cached_prompt_tokens"] == cached(second)
        assert after["output_tokens"] - before["output_tokens"] == 16

        assert engine.reset_prefix_cache().done
        assert cached(ask(engine, long_text(1), "three")) == 0

        counts = engine.count_tokens(["", "word " * 300])
        assert counts == [0, 301]
        vllm_chat = first["usage"]["prompt_tokens"]
    with start("llamacpp") as engine:
        assert engine.count_tokens(["", "word " * 300]) == counts
        assert ask(engine, long_text(1), "one")["usage"]["prompt_tokens"] == vllm_chat


PARSER = """
import json, sys
from vllm.entrypoints.cli.serve import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
for argv in json.load(sys.stdin):
    make_arg_parser(FlexibleArgumentParser()).parse_args(argv)
"""


def test_vllm_knows_every_flag_of_every_variant():
    """By its own parser: no engine is started."""
    definition = load_backend("vllm")
    environment, weights = installed(definition), Weights("/m", "t", "q", "0", None, "")
    commands = []
    for variant in (None, *definition.variants):
        varied = configured(apply_variant(definition, variant), None, {})
        made = build_command(varied, env=environment, weights=weights, port=1, scratch=Path("/s"))
        commands.append(made.argv[2:])
    done = subprocess.run(
        [environment.python, "-c", PARSER], input=json.dumps(commands), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
