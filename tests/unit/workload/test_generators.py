"""What each generator promises of its prompts."""

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import groupby
from random import Random
from typing import get_args

import pytest

from harness.errors import SpecError
from harness.metrics.prefix import first_of_each_prefix, ideal_hit_rate, reusable
from harness.plan import Cell, load_points, warmup_requests
from harness.run.measure.workloads import Workloads
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.scenario import PROFILES, LoraMix, load_scenario, with_profile
from harness.spec.scenario.synthetic import (
    Agent,
    Classification,
    CopyAndWrite,
    FewShot,
    FixedLength,
    LengthClass,
    Mix,
    Rag,
    SharedPrefix,
    Structured,
    Topic,
    Victim,
)
from harness.workload.prompts import shared
from harness.workload.prompts.generate import generate
from harness.workload.prompts.lora import assigned
from harness.workload.prompts.shared import Zipf
from harness.workload.prompts.text import TextMaker
from harness.workload.prompts.topics import TOPICS
from harness.workload.prompts.workload import MESSAGE_BYTES


def words(texts):
    return [len(text.replace(".", " . ").split()) for text in texts]


SPECS = [
    FixedLength(20, 4),
    Mix((LengthClass("a", 10, 4, 3.0), LengthClass("b", 30, 8))),
    Classification(20, 8, ("sport", "food", "music")),
    CopyAndWrite(20, 8),
    SharedPrefix(3, 40, 10, 8, zipf_exponent=1.0, turns=3),
    SharedPrefix(3, 40, 10, 8, turns=2, own_share=0.4),
    FewShot(2, 3, 10, 10, 4),
    Rag(9, 20, 3, 10, 8, 4),
    Agent(30, 3, 20, 3, 10, 8),
    Structured(12, 60),
]
SPREAD = [
    FixedLength(20, 100, 0.1),
    Mix((LengthClass("a", 10, 100),), 0.1),
    CopyAndWrite(20, 100, 0.1),
    FewShot(2, 3, 10, 10, 100, 0.1),
    Rag(9, 20, 3, 10, 8, 100, output_spread=0.1),
]
kinds = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.generator)


@pytest.mark.parametrize("spec", SPREAD, ids=lambda spec: spec.generator)
def test_answers_are_spread_by_the_seed_and_keep_their_mean(spec):
    first, again, other = (generate(spec, 400, seed, TextMaker(words)) for seed in (3, 3, 4))
    lengths = first.requested.numbers["max_tokens"]
    assert first.sha256 == again.sha256 != other.sha256
    assert (lengths.min(), lengths.max()) == (90, 110)
    assert lengths.mean() == lengths[:8].mean() == 100  # of any stretch of pairs
    assert len(set(lengths.tolist())) == 21


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_the_mean_of_a_few_tokens_stays_where_the_spread_would_leave_none(tokens):
    workload = generate(FixedLength(20, tokens, 0.9), 400, 3, TextMaker(words))
    lengths = workload.requested.numbers["max_tokens"]
    assert (lengths.min(), lengths.max(), lengths.mean()) == (1, 2 * tokens - 1, tokens)


def test_without_a_spread_the_bytes_are_as_they_were():
    """Of runs that were published before lengths could be spread."""
    made = generate(FixedLength(20, 4), 50, 3, TextMaker(words))
    assert made.sha256 == "2278df74da17e6bc9dcd8d6fda6df1cc1be1f133049b52b2115cde5ee1928099"


@kinds
@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_exactly_so_many_requests_with_their_tokens_counted(spec, count):
    made = generate(spec, count, 3, TextMaker(words))
    requests = list(made.requests)
    assert len(requests) == len(made) == count
    for request in requests:
        counted = words([content for _, content in request.messages])
        assert sum(counted) == request.content_tokens
        assert sum(part.tokens for part in request.shared) <= request.content_tokens
    assert list(made.requests) == requests, "read twice, equal twice"


@kinds
def test_texts_that_stand_together_are_counted_together(spec):
    """A token for four characters: two texts have another number together than alone."""

    def letters(texts):
        return [-(-len(text) // 4) for text in texts]

    for request in generate(spec, 30, 3, TextMaker(letters)).requests:
        assert sum(letters([content for _, content in request.messages])) == request.content_tokens


@kinds
def test_no_two_prompts_are_alike_and_a_seed_decides_all(spec):
    made = generate(spec, 60, 3, TextMaker(words))
    assert len({request.messages for request in made.requests}) == 60
    assert generate(spec, 60, 3, TextMaker(words)).sha256 == made.sha256
    assert generate(spec, 60, 4, TextMaker(words)).sha256 != made.sha256


@kinds
def test_a_longer_run_begins_as_a_shorter_one(spec):
    """But where its stretches move."""
    if isinstance(spec, Structured):
        spec = Structured(12, 60, free=False)
    short, long = (list(generate(spec, count, 3, TextMaker(words)).requests) for count in (5, 9))
    assert long[:5] == short, "the first requests must not depend on how many there are"


def test_what_is_declared_shared_is_and_nothing_else():
    """Against the prompts themselves: parts with equal ids are equal text at equal places."""
    with_own = SharedPrefix(3, 40, 10, 8, own_share=0.5)
    for spec in (SharedPrefix(3, 40, 10, 8), with_own, FewShot(2, 3, 10, 10, 4), Rag(9, 20, 3, 10, 8, 4)):
        made = list(generate(spec, 40, 3, TextMaker(words)).requests)
        for one in made[:10]:
            for other in made[10:]:
                both = 0
                for part, same in zip(one.shared, other.shared, strict=False):
                    if part != same:
                        break
                    both += part.tokens
                said = [
                    " ".join(content for _, content in made.messages).replace(".", " .").split()
                    for made in (one, other)
                ]
                alike = next(i for i, (a, b) in enumerate(zip(*said, strict=False)) if a != b)
                assert both <= alike <= both + 3, "a word or two may be alike by chance"


def test_light_and_heavy_requests_are_together_as_many_as_were_asked_for():
    made = list(generate(Victim(20, 8, 0.1, 40, 8, 0.5), 60, 3, TextMaker(words)).requests)
    assert len(made) == 60
    assert {request.kind for request in made} == {"alone", "beside", "settling", "heavy"}
    times = [request.at_ns for request in made]
    assert times == sorted(times)


def test_unique_prompts_share_no_block_whatever_its_size():
    for spec in (FixedLength(60, 4), Classification(60, 8, ("sport", "food"))):
        made = generate(spec, 300, 3, TextMaker(words))
        assert ideal_hit_rate(made.requested) == 0
        assert 5 < made.alike_chars < 60
        begins = Counter(request.messages[0][1][: made.alike_chars + 1] for request in made.requests)
        assert max(begins.values()) == 1


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_no_prompt_has_more_bytes_than_the_bound_on_its_tokens(spec):
    made = generate(spec, 60, 3, TextMaker(words))
    requests = list(made.requests)
    if any(request.constraint or request.tools for request in requests):
        assert made.most_tokens(20) is None
        return
    requests = [request for request in requests if request.turn <= 0]
    sizes = [sum(len(content.encode()) for _role, content in request.messages) for request in requests]
    around = MESSAGE_BYTES * max(len(request.messages) for request in requests)
    assert max(sizes) + 20 < made.most_tokens(20) <= max(sizes) + around + 20
    assert made.most_tokens(None) is None


def test_labels_are_known_and_all_asked():
    made = generate(Classification(20, 8, ("sport", "food", "music")), 90, 3, TextMaker(words))
    found = Counter(made.requested.expectations[i].name for i in made.requested.numbers["expected"])
    assert set(found) == {"sport", "food", "music"}
    for request in made.requests:
        assert request.messages[0][1].endswith("sport, food, music? Answer with that word only.")


def test_every_topic_that_a_scenario_may_name_has_its_words():
    assert set(TOPICS) == set(get_args(Topic))


def test_what_cannot_be_asked_is_refused_before_anything_starts(tmp_path):
    for change, said in (
        ({"prompts.schemas": str(tmp_path)}, r"no \*.json file"),
        ({"request.exact_output": True}, "exact_output conflicts with structured output"),
        ({"prompts.shapes": ["xml"]}, "'xml' is not one of"),
    ):
        with pytest.raises(SpecError, match=said):
            load_scenario("structured-output", change)
    with pytest.raises(SpecError, match="'spoort' is not one of"):
        load_scenario("short-classification", {"prompts.labels": ["spoort", "food"]})


def test_turns_of_a_chat_stand_together_and_only_the_first_has_the_system_prompt():
    made = generate(SharedPrefix(3, 40, 10, 8, turns=4), 22, 3, TextMaker(words))
    sessions = [[r.turn for r in turns] for _, turns in groupby(made.requests, lambda r: r.session)]
    assert sessions == [[0, 1, 2, 3]] * 5 + [[0, 1]]
    for request in made.requests:
        roles = [role for role, _ in request.messages]
        assert roles == (["system", "user"] if request.turn == 0 else ["user"])
    shared, total = reusable(made.requested)
    assert total[:4].tolist() == [50, 68, 86, 104]
    assert shared[1:4].tolist() == [58, 76, 94]


def test_each_group_may_come_once_before_any_is_drawn():
    """The most popular last, as a cache keeps them."""
    made = generate(SharedPrefix(3, 40, 10, 8), 40, 3, TextMaker(words), each_first=True).requests
    groups = [part.id for request in made for part in request.shared]
    assert groups[:3] == [2, 1, 0]
    assert len(groups) == 40
    assert set(groups) == {0, 1, 2}


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.9])
def test_a_share_of_the_chats_has_a_system_prompt_of_its_own(share):
    spec = SharedPrefix(2, 60, 20, 8, turns=2, own_share=share)
    made = list(generate(spec, 800, 3, TextMaker(words)).requests)
    chats = [request for request in made if request.turn == 0]
    own = [request.messages[0] for request in chats if request.kind == "own"]
    assert len(set(own)) == len(own)
    assert not set(own) & {request.messages[0] for request in chats if request.kind == "shared"}
    for begin in range(0, 400, 100):
        among = Counter(request.kind for request in chats[begin : begin + 100])
        assert among["own"] == pytest.approx(100 * share, abs=2)
    assert all(a.kind == b.kind for a, b in zip(made[::2], made[1::2], strict=True))


def test_prompts_of_their_own_are_those_of_a_cache_that_misses():
    """Four of five prompts begin with 60 of 80 tokens that a cache has."""
    spec = SharedPrefix(1, 60, 20, 8, own_share=0.2)
    made = generate(spec, 500, 3, TextMaker(words))
    assert ideal_hit_rate(made.requested, slice(100, None)) == pytest.approx(0.8 * 0.75, abs=0.01)


def test_own_system_prompts_are_refused_where_the_order_or_the_working_set_is_known():
    for change in ({"order": "cyclic"}, {"groups": 0}):
        spec = replace(SharedPrefix(2, 30, 10, 8, own_share=0.2), **change)
        with pytest.raises(SpecError, match="own_share"):
            spec.check("prompts")


def test_an_agent_offers_its_tools_in_every_turn_and_brings_results():
    made = generate(Agent(30, 3, 20, 3, 10, 8, tool_choice="auto"), 9, 3, TextMaker(words))
    for request in made.requests:
        assert len(request.tools.definitions) == 3
        assert request.tools.choice == "auto"
        assert request.expected.check == "tool_call"
        roles = [role for role, _ in request.messages]
        assert roles == (["tool"] if request.turn else ["system", "user"])


def test_structured_asks_the_same_tasks_free_and_constrained():
    made = list(generate(Structured(12, 60), 64, 3, TextMaker(words)).requests)
    asked = [request.expected.name for request in made]
    assert [request.kind == "free" for request in made] == [True] * 16 + [False] * 32 + [True] * 16
    assert asked[:16] == asked[16:32]
    assert asked[32:48] == asked[48:]
    assert {r.constraint.shape for r in made if r.constraint} == {"json_schema", "regex", "choice"}
    assert not any(request.constraint for request in made if request.kind == "free")


def test_warm_up_is_free_so_that_each_schema_is_new_to_the_measured_part():
    """As 64 in flight warm up: 192 requests before 512."""
    scenario = load_scenario("structured-output", {"load.concurrency": [64]}, "gpu")
    (point,) = load_points(scenario.load)
    made = Workloads(scenario, 1, 0, None).of(Cell("", 0, point, 0))
    warmup = warmup_requests(scenario, point)
    kinds = made.requested.kinds
    assert (warmup, set(kinds[:warmup])) == (192, {"free"})
    measured = [kind == "free" for kind in kinds[warmup:]]
    assert measured == [True] * 128 + [False] * 256 + [True] * 128
    assert (
        "free"
        not in generate(Structured(12, 60, free=False), 8, 0, TextMaker(words), warmup=4).requested.kinds
    )


def test_schemas_differ_from_seed_to_seed_so_that_none_is_compiled_yet():
    def sent(seed):
        made = generate(Structured(12, 60, ("json_schema",)), 40, seed, TextMaker(words))
        return {json.dumps(r.constraint.value) for r in made.requests if r.constraint}

    assert len(sent(1)) == 8
    assert not sent(1) & sent(2)


def test_schemas_of_a_folder(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.json").write_text('{"type": "integer"}')
    (tmp_path / "a.json").write_text('{"type": "object"}')
    spec = Structured(5, 9, ("json_schema",), str(tmp_path), free=False)
    made = generate(spec, 4, 0, TextMaker(words))
    expected = [made.requested.expectations[i] for i in made.requested.numbers["expected"]]
    schemas = {"a": {"type": "object"}, "deep/b": {"type": "integer"}}
    assert [(one.name, one.value) for one in expected] == [*schemas.items()] * 2
    (tmp_path / "c.json").write_text("[]")
    with pytest.raises(SpecError, match="must be a JSON object"):
        generate(spec, 4, 0, TextMaker(words))
    with pytest.raises(SpecError, match=r"no \*.json file"):
        generate(Structured(5, 9, ("json_schema",), str(tmp_path / "deep" / "x")), 4, 0, TextMaker(words))


def test_a_profile_is_laid_over_key_by_key():
    table = {"a": {"x": 1, "y": 2}, "profiles": {"cpu": {"a": {"x": 3}}}}
    assert with_profile(table, "cpu", "f") == {"a": {"x": 3, "y": 2}, "profile": "cpu"}
    assert with_profile(table, "gpu", "f") == {"a": {"x": 1, "y": 2}, "profile": "gpu"}
    assert with_profile({"a": 1}, "cpu", "f") == {"a": 1}
    with pytest.raises(SpecError, match="unknown profile 'tpu'"):
        with_profile({"profiles": {"tpu": {}}}, "cpu", "f")
    with pytest.raises(SpecError, match="unknown key 'profile'"):
        with_profile({"profile": "cpu"}, "cpu", "f")


def test_overrides_win_over_the_profile():
    for profile in PROFILES:
        scenario = load_scenario("shared-prefix", {"prompts.groups": 7}, profile)
        assert (scenario.prompts.groups, scenario.profile) == (7, profile)
    assert (
        load_scenario("shared-prefix", None, "gpu").load.requests
        > load_scenario("shared-prefix").load.requests
    )


def test_texts_are_streamed_checked_and_trusted_after_a_while():
    asked = []

    def counter(texts):
        asked.extend(texts)
        return words(texts)

    texts = TextMaker(counter)
    asked.clear()
    made = list(texts.stream([12] * 8192, Random(1)))
    assert words(made) == [12] * 8192
    assert len(set(made)) == 8192
    assert 2048 <= len(asked) < 2600


def test_a_scenario_sizes_the_engines_it_starts_and_the_command_line_wins():
    def values(**more):
        made = prepare(RunOptions("batch-1-8-32", "llamacpp,truth", profile="gpu", **more))
        return [backend.engine_values for backend in made.backends]

    assert values() == [{"context_tokens": "1024", "max_sequences": "32"}, {"max_sequences": "32"}]
    assert values(engine_values={"max_sequences": "4"})[0]["max_sequences"] == "4"


def mixed(count=400, **lora):
    made = generate(FixedLength(8, 4), count, 5, TextMaker(words), partial(assigned, LoraMix(**lora)))
    return [request.adapter for request in made.requests], made


def test_adapters_in_turn_with_the_base_model_first():
    adapters, made = mixed(7, adapters=2)
    assert adapters == ["", "adapter-1", "adapter-2", "", "adapter-1", "adapter-2", ""]
    assert made.requested.kinds[:3] == ["base", "adapter-1", "adapter-2"]
    assert mixed(3, adapters=2, base=False)[0] == ["adapter-1", "adapter-2", "adapter-1"]


def test_adapters_by_weight_and_by_popularity():
    requests = [*generate(FixedLength(8, 4), 1, 5, TextMaker(words)).requests] * 4000

    def shares(**lora):
        adapters = Counter(request.adapter for request in assigned(LoraMix(adapters=2, **lora), requests, 5))
        return [adapters[name] / 4000 for name in ("", "adapter-1", "adapter-2")]

    assert shares(assignment="weighted", weights=(1, 2, 5)) == pytest.approx([0.125, 0.25, 0.625], abs=0.03)
    assert shares(assignment="zipf") == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.03)


def test_a_prefix_is_shared_by_requests_of_one_adapter_alone():
    """Two prefixes, two adapters and the base model: six of twelve requests are the first of their kind."""
    mix, spec = LoraMix(adapters=2), SharedPrefix(2, 30, 10, 8, order="cyclic")
    made = generate(spec, 12, 5, TextMaker(words), partial(assigned, mix))
    assert list(first_of_each_prefix(made.requested)) == [0, 1, 2, 3, 4, 5]
    assert reusable(made.requested)[0].tolist() == [0] * 6 + [30] * 6


def test_the_prompts_are_those_without_adapters_and_the_hash_is_another():
    plain = generate(FixedLength(8, 4), 5, 5, TextMaker(words))
    _, made = mixed(5, adapters=1)
    assert [one.messages for one in made.requests] == [one.messages for one in plain.requests]
    assert made.sha256 != plain.sha256


@pytest.mark.parametrize("exponent", [12.0, 400.0])
def test_documents_that_are_hardly_ever_drawn_are_drawn_in_the_end(exponent):
    assert Zipf(200, exponent).several(4, Random(0)) == [0, 1, 2, 3]


def test_what_is_drawn_after_the_tries_is_as_likely_as_before(monkeypatch):
    ranks, random = Zipf(3, 1.0), Random(0)
    tried = Counter(tuple(ranks.several(2, random)) for _ in range(4000))
    monkeypatch.setattr(shared, "_TRIES", 0)
    weighed = Counter(tuple(ranks.several(2, random)) for _ in range(4000))
    assert tried.keys() == weighed.keys()
    assert all(abs(tried[pair] - weighed[pair]) < 200 for pair in tried)
