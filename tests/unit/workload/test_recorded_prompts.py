"""Requests from files: lengths to the token, sharing as in the trace and no other."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import SpecError
from harness.metrics.prefix import ideal_hit_rate, reusable
from harness.records.request_table import Expected
from harness.run.setup.prompt_source import checked_source
from harness.spec.scenario import PromptFile, TraceReplay, load_scenario, parse_scenario
from harness.workload.prompts.generate import generate
from harness.workload.prompts.recorded import dataset_of
from harness.workload.prompts.request import Constraint
from harness.workload.prompts.structured import set_apart
from harness.workload.prompts.text import TextMaker
from tests.unit.workload.test_prompts import letters, merging, words
from tests.unit.workload.test_traces import DATA

SCENARIO = {"scenario": {"name": "x", "purpose": "y"}, "load": {"requests": 5, "replay_speed": [1, 2]}}


def made(spec, count=100, seed=1, tokenizer=words):
    workload = generate(spec, count, seed, TextMaker(tokenizer))
    return workload, [request.messages[-1][1] for request in workload.requests]


@pytest.fixture
def trace(tmp_path):
    def write(requests, **options):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        lines = (
            {"at_s": i, "input_tokens": length, "output_tokens": 3, "blocks": blocks}
            for i, (length, blocks) in enumerate(requests)
        )
        path.write_text("\n".join(map(json.dumps, lines)))
        return TraceReplay(str(path), block_tokens=16, **options)

    return write


@pytest.mark.parametrize("tokenizer", [words, letters, merging])
def test_lengths_and_times_are_the_traces(tokenizer):
    workload, texts = made(TraceReplay(str(DATA / "mooncake.jsonl")), tokenizer=tokenizer)
    assert tokenizer(texts) == [1024, 600, 1100, 512]
    assert workload.requested.numbers["max_tokens"].tolist() == [20, 5, 7, 1]
    assert workload.requested.numbers["at_ns"].tolist() == [0, 0, 1_500_000_000, 3_000_000_000]


def test_what_requests_share_is_what_the_trace_shares():
    workload, texts = made(TraceReplay(str(DATA / "mooncake.jsonl")))
    first, second, third, fourth = (text.replace(".", " .").split() for text in texts)
    assert third[:1024] == first
    assert second[:512] == first[:512] == fourth
    assert second[512:] != first[512:600]
    shared, total = reusable(workload.requested)
    assert shared.tolist() == [0, 512, 1024, 511]  # the last token of a prompt is always computed
    assert total.tolist() == [1024, 600, 1100, 512]
    assert ideal_hit_rate(workload.requested) == pytest.approx(2047 / 3236)


def test_a_block_that_is_cut_short_is_the_beginning_of_the_whole_one(trace):
    workload, texts = made(trace([(24, [1, 2]), (32, [1, 2]), (40, [1, 2, 3]), (20, [1, 4])]))
    split = [text.replace(".", " .").split() for text in texts]
    assert [len(text) for text in split] == [24, 32, 40, 20]
    assert split[1][:24] == split[0]
    assert split[2][:32] == split[1]
    shared, _ = reusable(workload.requested)
    assert shared.tolist() == [0, 24, 32, 16]


@settings(max_examples=settings().max_examples // 2)
@given(
    requests=st.lists(
        st.tuples(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True), st.integers(1, 16)),
        min_size=1,
        max_size=12,
    )
)
def test_any_blocks_give_exact_lengths_and_the_sharing_that_is_counted(tmp_path_factory, requests):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    lines = (
        {
            "at_s": i,
            "input_tokens": 16 * (len(blocks) - 1) + last,
            "output_tokens": 1,
            # The same block behind another one is another block.
            "blocks": [hash(tuple(blocks[: n + 1])) % 10**9 for n in range(len(blocks))],
        }
        for i, (blocks, last) in enumerate(requests)
    )
    path.write_text("\n".join(map(json.dumps, lines)))
    workload, texts = made(TraceReplay(str(path), block_tokens=16))
    tokens = [text.replace(".", " .").split() for text in texts]
    shared, total = reusable(workload.requested)
    assert [len(text) for text in tokens] == total.tolist()
    for place, text in enumerate(tokens):
        best = max((_common(text, other) for other in tokens[:place]), default=0)
        assert best >= shared[place] or shared[place] == 0


def _common(one, other):
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def test_without_blocks_nothing_is_shared():
    workload, texts = made(TraceReplay(str(DATA / "azure.csv")))
    assert words(texts) == [374, 396, 879, 91]
    assert ideal_hit_rate(workload.requested) == 0
    assert max(_common(*pair) for pair in pairwise(texts)) < 60


def test_a_window_a_limit_and_clips_are_kept():
    spec = TraceReplay(str(DATA / "mooncake.jsonl"), start_s=1, max_input_tokens=1000, max_output_tokens=2)
    workload, texts = made(spec)
    assert words(texts) == [1000, 512]
    assert workload.requested.numbers["max_tokens"].tolist() == [2, 1]
    assert len(made(replace(spec, start_s=0), count=3)[1]) == 3


def test_a_hundred_requests_hash_alike_and_times_are_part_of_the_hash(trace):
    requests = [(20, [i, 1000 + i]) for i in range(100)]
    spec = trace(requests)
    assert made(spec)[0].sha256 == made(spec)[0].sha256
    shifted = trace([(20, [0, 1000])], start_s=0)
    assert made(shifted, count=1)[0].sha256 == made(spec, count=1)[0].sha256
    assert made(spec, seed=2)[0].sha256 != made(spec)[0].sha256


CHATS = [
    {"conversations": [{"from": "human", "value": "one two three"}, {"from": "gpt", "value": "a b c d"}]},
    {"prompt": "five words are in here", "system": "be kind", "output_tokens": 9},
    {"prompt": "six words are in here too", "system": "be kind"},
    {"prompt": "too long " * 50},
]


def test_prompts_from_a_file_keep_their_text_and_lengths(tmp_path):
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(CHATS))
    spec = PromptFile(str(path), format="sharegpt", order="file", max_input_tokens=20)
    workload, texts = made(spec)
    assert texts == ["one two three", "five words are in here", "six words are in here too"]
    assert workload.requested.numbers["max_tokens"].tolist() == [4, 9, 128]
    assert workload.requested.numbers["content_tokens"].tolist() == [3, 7, 8]
    assert reusable(workload.requested)[0].tolist() == [0, 0, 2]
    fixed = made(replace(spec, output_tokens=50, max_output_tokens=30))[0]
    assert set(fixed.requested.numbers["max_tokens"].tolist()) == {30}
    shuffled = {tuple(made(replace(spec, order="shuffled"), seed=seed)[1]) for seed in range(20)}
    assert len(shuffled) > 3
    with pytest.raises(SpecError, match="of 4 prompts none has 500 tokens or more"):
        made(replace(spec, min_input_tokens=500, max_input_tokens=None))


def test_categories_of_a_file_are_classes_of_requests(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(
        "\n".join(
            json.dumps(line)
            for line in (
                {"category": "math", "turns": ["one two"]},
                {"category": "roleplay", "turns": ["three four"]},
                {"prompt": "five"},
            )
        )
    )
    spec = PromptFile(str(path), order="file")
    assert made(spec)[0].requested.kinds == ["math", "roleplay", "other"]
    assert made(replace(spec, categories=("math",)))[1] == ["one two"]
    assert dataset_of(replace(spec, categories=("math", "roleplay"))).held == 2
    with pytest.raises(SpecError, match=r"unknown category of .*'maths'") as refused:
        made(replace(spec, categories=("maths",)))
    assert "did you mean 'math'?" in refused.value.hint
    path.write_text(json.dumps({"prompt": "five"}))
    dataset_of.cache_clear()
    assert made(spec)[0].requested.kinds == [""]


def test_answers_are_held_to_the_schemas_of_a_file(tmp_path):
    path = tmp_path / "mine.jsonl"
    schema = {"type": "object"}
    lines = [{"prompt": "one", "schema": schema}, {"prompt": "two", "schema": schema}, {"prompt": "three"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    workload, _ = made(PromptFile(str(path), order="file"))
    assert workload.requested.kinds == ["json_schema", "json_schema", "other"]
    assert workload.requested.numbers["expected"].tolist() == [0, 0, -1]
    assert workload.requested.expectations == [Expected("json_schema", schema)]
    (constraint,) = workload.constraints
    assert constraint == Constraint("json_schema", schema)
    assert set_apart(constraint, 3).value == {"title": "answer 3", "type": "object"}
    scenario = {"prompts.file": str(path), "load.warmup_requests": 0, "load.concurrency": (1,)}
    with pytest.raises(SpecError, match="its length cannot be forced"):
        checked_source(load_scenario("prompt-file", scenario), None, scenario)
    free = load_scenario("prompt-file", {**scenario, "request.exact_output": False})
    assert checked_source(free, None, scenario).has_schemas


def test_replay_speed_needs_prompts_with_times():
    with_trace = {**SCENARIO, "prompts": {"generator": "trace", "file": "x"}}
    assert parse_scenario(with_trace, "f").load.replay_speed == (1.0, 2.0)
    with pytest.raises(SpecError, match="have no times of their own"):
        parse_scenario(
            {**SCENARIO, "prompts": {"generator": "fixed-length", "input_tokens": 1, "output_tokens": 1}}, "f"
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"end_s": 5, "start_s": 6}, "must be above start_s"),
        ({"start_s": -1}, "at least 0"),
        ({"max_input_tokens": 0}, "at least 1"),
        ({"format": "csv"}, "not one of"),
    ],
)
def test_wrong_keys_of_a_trace_are_named(changes, words):
    with pytest.raises(SpecError, match=words):
        parse_scenario({**SCENARIO, "prompts": {"generator": "trace", "file": "x", **changes}}, "f")


def test_replayed_times_start_at_the_first_request_and_keep_their_ratios():
    from harness.workload.arrivals import replayed

    assert replayed(np.array([5, 5, 9, 15]) * 10**9, 2.0).tolist() == [0, 0, 2 * 10**9, 5 * 10**9]
    assert replayed(np.zeros(0, np.int64), 2.0).tolist() == []
