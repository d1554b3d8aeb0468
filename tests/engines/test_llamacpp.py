"""The real llama.cpp server on the default model."""

import base64
import dataclasses
import io
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image

from harness.engines.provide.install import install_engine, installed
from harness.engines.provide.models import ensure_weights, local_model
from harness.engines.session import open_engine
from harness.engines.start.launch_choice import resolve_launch
from harness.engines.start.request import EngineRequest
from harness.errors import SetupError
from harness.model import Ending
from harness.spec.backend import BackendRef
from harness.spec.backend_refs import load_backend
from harness.spec.models import choose_model
from tests.engines.answers import cached
from tests.engines.capture import of, shapes, stored

pytestmark = pytest.mark.engine


def test_what_is_recorded_is_what_runs(start):
    with start("llamacpp", context_tokens=1024) as engine:
        facts = engine.facts
        slots = engine._ask("GET", "/slots").document()
        props = engine._ask("GET", "/props").document()
    assert facts["command"][facts["command"].index("--threads") + 1] == "1"
    assert len(slots) == facts["values"]["max_sequences"]
    assert {slot["n_ctx"] for slot in slots} == {1024}
    assert props["model_path"] == facts["weights"]["model"]
    assert facts["server_version"] == props["build_info"]
    assert facts["package_version"] == installed(load_backend("llamacpp")).version
    assert facts["weights"]["track"] == "gguf-q4_1"
    assert engine.served_name == "bench"
    assert engine.liveness.look() == Ending("died", "exit code 0")


def test_weights_quantised_anew_are_served(start, ask):
    with start("llamacpp@q8_0") as engine:
        facts = engine.facts["weights"]
        answer = ask(engine, "Answer in one word.", "What is the capital of France?")
    assert (facts["track"], facts["quantisation"]) == ("gguf-q8_0", "Q8_0 (from Q4_1)")
    assert "Paris" in answer["choices"][0]["message"]["content"]


def test_it_answers_as_captured(start):
    with start("llamacpp") as engine:
        assert shapes(of(engine)["answers"]) == shapes(stored("llamacpp")["answers"])


def test_a_shared_prefix_is_reused_and_a_reset_forgets_it(start, ask, long_text):
    with start("llamacpp@no-host-cache") as engine:
        first = ask(engine, long_text(1), "one")
        second = ask(engine, long_text(1), "two")
        assert cached(first) < 30
        assert cached(second) > 0.9 * second["usage"]["prompt_tokens"]
        assert engine.reset_prefix_cache().done
        assert cached(ask(engine, long_text(1), "three")) == 0


def test_prompts_of_another_cell_find_nothing_with_the_host_cache_on(start, ask, long_text):
    """The reset leaves prompts in host memory: they serve their own prefixes only."""
    with start("llamacpp") as engine:
        for salt in range(10):  # more than there are slots
            ask(engine, long_text(salt, words=60), "one")
        assert cached(ask(engine, long_text(0, words=60), "two")) > 150
        engine.reset_prefix_cache()
        assert cached(ask(engine, long_text(77, words=60), "one")) < 30


def test_slots_share_prefixes_under_concurrency(start, ask, long_text):
    with start("llamacpp") as engine, ThreadPoolExecutor(4) as pool:
        for salt in (1, 2):
            ask(engine, long_text(salt), "first touch")
        before = engine.counters()
        answers = list(pool.map(lambda i: ask(engine, long_text(1 + i % 2), f"question {i}"), range(16)))
        after = engine.counters()
    prompt = sum(answer["usage"]["prompt_tokens"] for answer in answers)
    assert sum(map(cached, answers)) > 0.8 * prompt
    assert after["prompt_tokens"] - before["prompt_tokens"] == prompt
    assert after["cached_prompt_tokens"] - before["cached_prompt_tokens"] == sum(map(cached, answers))
    assert after["output_tokens"] - before["output_tokens"] == 16 * 8


def test_without_prefix_cache_nothing_is_reused(start, ask, long_text):
    with start("llamacpp@no-prefix-cache") as engine:
        for question in ("one", "two"):
            answer = ask(engine, long_text(1), question)
            assert cached(answer) == 0
            assert answer["usage"]["completion_tokens"] == 8


def test_tokens_are_counted_for_text_alone(start):
    with start("llamacpp") as engine:
        counts = engine.count_tokens(["", "time", "time time", "time time time"])
        assert counts[0] == 0
        assert all(more > fewer for fewer, more in pairwise(counts))
        assert engine.count_tokens(["word " * 300]) == [301]


def picture(colour):
    file = io.BytesIO()
    Image.new("RGB", (256, 256), colour).save(file, "PNG")
    url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def test_an_image_is_tokens_of_the_prompt_and_changes_the_answer(start, ask):
    name, model = choose_model(None, images=True)
    with_torch = install_engine(load_backend("vllm"), print)
    ensure_weights(name, model, "bf16-random", with_torch, print)
    text = {"type": "text", "text": "What do you see here?"}
    red, white = picture("red"), picture("white")
    with start("llamacpp", named_model=(name, model)) as engine:
        asked = [[], [red], [white], [red, white]]
        answers = [ask(engine, "Answer in one word.", [text, *images]) for images in asked]
        weights = engine.facts["weights"]
    counts = [answer["usage"]["prompt_tokens"] for answer in answers]
    assert [count - counts[0] for count in counts] == [0, 93, 93, 186]  # 93 on vLLM too
    assert len({answer["choices"][0]["message"]["content"] for answer in answers}) == len(asked)
    assert Path(weights["vision"]).parent == Path(weights["model"]).parent


def test_bad_weights_end_the_start_with_the_servers_words(start, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"\0" * 1000)
    with pytest.raises(SetupError) as caught:
        start("llamacpp", named_model=local_model(str(tmp_path / "bad.gguf"))).__enter__()
    assert "ended while loading" in str(caught.value)
    assert "weights cannot be read" in caught.value.hint


def test_a_flag_the_shim_does_not_know_ends_the_start(tmp_path):
    definition = load_backend("llamacpp")
    engine = dataclasses.replace(definition.engine, args=(*definition.engine.args, "--flash-attn", "on"))
    ref = BackendRef(dataclasses.replace(definition, engine=engine), None, None)
    wanted = EngineRequest(ref, resolve_launch(ref, "auto"), *choose_model(None), log_path=tmp_path / "log")
    session = open_engine(wanted, print)
    with pytest.raises(
        SetupError, match=r"exit code 2(.|\n)*unrecognized arguments: --flash-attn on"
    ) as caught:
        session.__enter__()
    assert "a flag of its definition, or of its variant, is unknown" in caught.value.hint
