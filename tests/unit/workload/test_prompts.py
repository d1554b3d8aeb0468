import gc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import SetupError
from harness.host.helper_process import open_descriptors
from harness.metrics.prefix import ideal_hit_rate
from harness.spec.scenario import GENERATORS, FixedLength, SharedPrefix
from harness.workload.prompts.generate import MAKERS, generate
from harness.workload.prompts.request import CallPlace, ChatRequest
from harness.workload.prompts.text import TextMaker
from harness.workload.prompts.workload import workload


def words(texts):
    """One token a word or full stop."""
    return [len(text.replace(".", " .").split()) for text in texts]


def letters(texts):
    """A token for every four characters, as a crude estimate counts."""
    return [-(-len(text) // 4) for text in texts]


def merging(texts):
    """Words, but ' the' melts into the word before it: a sum of words comes out wrong."""
    return [len(text.replace(".", " .").replace(" the ", "_the ").split()) for text in texts]


@pytest.mark.parametrize("tokenizer", [words, letters, merging])
@pytest.mark.parametrize("length", [1, 2, 7, 64, 513])
def test_lengths_are_exact_to_the_token(tokenizer, length):
    texts = TextMaker(tokenizer).make([length] * 20, Random(5))
    assert tokenizer(texts) == [length] * 20


@settings(max_examples=25)
@given(lengths=st.lists(st.integers(1, 400), min_size=1, max_size=30), seed=st.integers(0, 2**32))
def test_any_lengths_from_any_seed(lengths, seed):
    assert merging(TextMaker(merging).make(lengths, Random(seed))) == lengths


def test_a_tokenizer_without_whole_words_is_refused():
    with pytest.raises(SetupError, match="none of the vocabulary"):
        TextMaker(lambda texts: [7 * len(text) for text in texts])


def test_a_tokenizer_that_can_never_hit_a_length_is_refused():
    def even(texts):
        return [
            2 * count if len(text) > 20 else count for text, count in zip(texts, words(texts), strict=True)
        ]

    with pytest.raises(SetupError, match="no text of exactly 101 tokens"):
        TextMaker(even).make([101], Random(0))


def test_a_tokenizer_that_is_gone_is_remembered_by_its_words():
    """Of a word that it never counted, four letters are a token."""
    texts = TextMaker(words)
    drawn = texts.make([7, 64, 513], Random(5))
    assert texts.remembered().count([*drawn, "zzzzzzzz."]) == [7, 64, 513, 3]


def test_without_a_tokenizer_lengths_are_declared_approximate():
    made = generate(FixedLength(50, 8), 3, 0, TextMaker(None))
    assert not made.exact
    assert words([request.messages[0][1] for request in made.requests]) == [50, 50, 50]


def test_fixed_length_prompts_are_unique():
    made = generate(FixedLength(32, 8), 500, 1, TextMaker(words))
    assert len({request.messages for request in made.requests}) == 500
    assert ideal_hit_rate(made.requested) == 0


def test_shared_prefix_has_its_groups_in_zipf_order():
    made = generate(SharedPrefix(4, 40, 10, 8, zipf_exponent=1.0), 4000, 1, TextMaker(words))
    systems = {request.messages[0] for request in made.requests}
    assert len(systems) == 4
    counts = [Counter(request.shared[0].id for request in made.requests)[group] for group in range(4)]
    total = sum(1 / rank for rank in (1, 2, 3, 4))
    for rank, count in enumerate(counts, start=1):
        assert count / 4000 == pytest.approx(1 / rank / total, abs=0.03)


def test_equal_seeds_give_equal_bytes_and_the_hash_knows_the_difference():
    spec = SharedPrefix(2, 20, 10, 8)
    texts = TextMaker(words)
    assert generate(spec, 10, 1, texts).sha256 == generate(spec, 10, 1, texts).sha256
    hashes = {generate(spec, 10, seed, texts).sha256 for seed in range(5)}
    hashes.add(generate(SharedPrefix(2, 20, 10, 9), 10, 0, texts).sha256)
    assert len(hashes) == 6


def test_the_workload_of_a_seed_never_changes():
    made = generate(SharedPrefix(2, 20, 10, 8, zipf_exponent=1.0), 10, 0, TextMaker(words))
    assert made.sha256 == "0a99926cd3259464733f1ba73eac80baa31bdf9a049586f19eb42d6410525ad0"


def test_every_generator_has_its_maker():
    assert set(MAKERS) == set(GENERATORS.values()), "MAKERS of harness/workload/prompts/generate.py"


def test_how_often_the_most_frequent_first_turn_comes():
    def most(*asked):
        return workload(iter(asked), exact=False).equal_prompts

    hello, other = (ChatRequest((("user", text),), 5) for text in ("Hello.", "Good day."))
    assert most(hello, other, replace(hello, turn=1), replace(hello, adapter="adapter-1")) == 1
    assert most(hello, other, hello, other, hello) == 3
    call = CallPlace(after=(), tool_ns=0, think_ns=0)
    assert most(*[replace(hello, call=call)] * 2) == 1  # their prompts may begin with other ones


def test_threads_may_read_one_workload_at_a_time():
    """As the engines of a duet do. A batch is longer than what a file buffers."""
    asked = [ChatRequest((("user", f"{number} " + "word " * 300),), 5) for number in range(4000)]
    made = workload(iter(asked), exact=False)
    with ThreadPoolExecutor(4) as pool:
        reads = [pool.submit(lambda: list(made.requests)) for _ in range(4)]
    assert all(read.result() == asked for read in reads)


def test_any_number_of_workloads_takes_one_descriptor():
    gc.collect()
    before = open_descriptors()
    made = [workload([ChatRequest((("user", str(number)),), 5)], exact=False) for number in range(100)]
    assert open_descriptors() <= before + 1
    read = [request.messages[0][1] for one in made for request in one.requests]
    assert read == [str(number) for number in range(100)]
    del made
    gc.collect()
    assert open_descriptors() <= before
