"""What definitions say and refuses a verdict is known before the first cell, as the report will say it."""

import pytest

from harness.conditions import unequal
from harness.conditions.ahead import Ahead, foreseen
from tests.factories.summaries import cell


def ahead(backend, variant=None, tuned=(), **values):
    return Ahead(backend, variant, {"values": values}, frozenset(tuned))


def told(in_flight=None, **backends):
    return [(one.labels, one.text) for _, one in foreseen(backends, in_flight)]


def test_threads_that_differ_are_said_as_the_cells_will_say_them():
    found = told(vllm=ahead("vllm", threads=2), sglang=ahead("sglang", threads=1))
    assert found == [(("vllm", "sglang"), "CPU threads: 2 (vllm), 1 (sglang)")]
    measured = unequal(
        [
            cell("vllm", conditions={"engine_values": {"threads": 2}}),
            cell("sglang", conditions={"engine_values": {"threads": 1}}),
        ]
    )
    assert found[0][1] in [one.text for one in measured if one.matters]


def test_every_pair_is_looked_at_and_equal_ones_are_not_told():
    backends = {name: ahead(name, threads=threads) for name, threads in (("a", 1), ("b", 2), ("c", 1))}
    assert [pair for pair, _ in told(**backends)] == [("a", "b"), ("b", "c")]


def test_what_is_not_known_of_one_refuses_nothing():
    assert told(vllm=ahead("vllm", threads=2), sglang=ahead("sglang")) == []
    assert told(vllm=ahead("vllm", threads=2), sglang=Ahead("sglang", None, {})) == []


def test_number_types_of_one_width_are_alike_and_others_are_not():
    assert told(a=ahead("a", dtype="bfloat16"), b=ahead("b", dtype="float16")) == []
    assert told(a=ahead("a", dtype="bfloat16"), b=ahead("b", dtype="float32")) == [
        (("a", "b"), "number type: bfloat16 (a), float32 (b)")
    ]


def test_a_variant_is_measured_for_what_it_sets():
    assert told(a=ahead("vllm", threads=2), b=ahead("vllm", "other", threads=1)) == []
    assert told(a=ahead("vllm", threads=2), b=ahead("vllm", threads=1)) != []


@pytest.mark.parametrize(
    ("in_flight", "said"), [(8, []), (9, ["sequences at once: 8 (a), 16 (b)"]), (None, 1)]
)
def test_fewer_sequences_matter_where_the_load_exceeds_them(in_flight, said):
    found = [
        text for _, text in told(in_flight, a=ahead("a", max_sequences=8), b=ahead("b", max_sequences=16))
    ]
    assert found == said if isinstance(said, list) else len(found) == said


def test_two_that_were_tuned_each_have_their_own_best():
    one, other = ahead("a", "tuned", ["threads"], threads=1), ahead("b", "tuned", ["threads"], threads=2)
    assert told(a=one, b=other) == []
    assert told(a=one, b=ahead("b", threads=2)) != []


def test_flags_and_variables_are_read_as_the_manifest_is():
    one = Ahead("sglang", None, {"command": ["--dtype", "float32"], "env": {"OMP_NUM_THREADS": "1"}})
    other = Ahead("vllm", None, {"command": ["--dtype", "bfloat16"], "env": {"OMP_NUM_THREADS": "2"}})
    assert [text for _, text in told(sglang=one, vllm=other)] == [
        "number type: float32 (sglang), bfloat16 (vllm)",
        "CPU threads: 1 (sglang), 2 (vllm)",
    ]
