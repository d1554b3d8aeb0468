"""Rank lines from hand-made verdicts, and from hand-made runs."""

import pytest

from harness.model import Interval, LoadPoint, PairVerdict
from harness.verdicts import Rules, compare
from harness.verdicts.ranking import rank, weights_of
from tests.factories import documents
from tests.unit.verdicts.test_pairs import cells

LOAD = LoadPoint("concurrency", 4)
METRIC = "ttft_ms.p50"
RULES = Rules(primary=METRIC, metrics=(METRIC,))
WORDS = {">": "faster", ">>": "faster", "≈": "same", "?": "not enough runs", "∦": "not comparable"}


def pair(a, b, word, ratio, **counts):
    made = {"a": a, "b": b, "load": LOAD, "metric": METRIC, "verdict": word, "runs": [5, 5], "ratio": ratio}
    return documents.made(PairVerdict, **made, **counts)


def line(estimates, signs, failed=()):
    """`signs`: {"ab": ">"}, of the first against the second. Of each that `failed`, 2 of 5 runs did."""
    ratios = {">": Interval(0.85, 0.9, 0.95), ">>": Interval(0.4, 0.5, 0.6)}
    findings = [
        pair(
            *labels,
            WORDS[sign],
            ratios.get(sign),
            measured=[5, 5],
            failed=[2 * (label in failed) for label in labels],
        )
        for labels, sign in signs.items()
    ]
    found = rank(findings, estimates, LOAD, METRIC, RULES)
    return next(((one.line, ["".join(group) for group in one.groups]) for one in found), None)


def test_the_articles_notation():
    signs = {"ab": ">>", "ac": ">>", "ad": ">>", "bc": ">", "bd": ">", "cd": "≈"}
    assert line({"d": 44, "c": 43, "b": 30, "a": 10}, signs) == ("a >> b > c ≈ d", ["a", "b", "cd"])


def test_same_does_not_carry_over():
    signs = {"ab": "≈", "bc": "≈", "ac": ">"}
    assert line({"a": 1, "b": 2, "c": 3}, signs) == ("a ≈ b ≈ c (a > c)", ["abc"])


def test_better_through_a_third_is_not_concluded():
    signs = {"ab": ">", "bc": "≈", "ac": "≈"}
    assert line({"a": 1, "b": 2, "c": 3}, signs) == ("a > b ≈ c (a ≈ c)", ["a", "bc"])


def test_runs_that_were_left_out_are_counted_among_the_most_of_any_pair():
    """The pair of a and c was decided after four runs, that of a and b looked at after five."""
    out = [{"not steady": 1}, {}]
    findings = [
        pair("a", "b", "not enough runs", None, measured=[5, 5], left_out=out),
        pair("a", "c", "faster", Interval(0.85, 0.9, 0.95), measured=[4, 4], left_out=out),
    ]
    for given in (findings, findings[::-1]):
        (found,) = rank(given, {"a": 1, "b": 2, "c": 3}, LOAD, METRIC, RULES)
        assert "(a: 1 of 5 runs left out: not steady)" in found.line


def test_undecided_and_uncomparable_are_no_order():
    signs = {"ab": "?", "bc": ">", "ac": ">"}
    assert line({"a": 1, "b": 2, "c": 3}, signs) == ("a ? b > c", ["ab", "c"])
    signs = {"ab": ">", "bc": "∦", "ac": ">"}
    assert line({"a": 1, "b": 2, "c": 3}, signs) == ("a > b ∦ c", ["a", "bc"])


def test_a_backend_that_compares_with_none_is_named_behind_the_line():
    found = line({"a": 1, "b": 2, "c": 3}, {"ab": ">", "ac": "∦", "bc": "∦"})
    assert found == ("a > b (not comparable: c)", ["a", "b"])
    assert line({"a": 1, "b": 2}, {"ab": "∦"}) is None
    assert line({"a": 1}, {}) is None


@pytest.mark.parametrize("of_c", [1.5, 3])
def test_who_compares_with_none_has_no_rank_where_another_failed(of_c):
    signs = {"bd": ">", "ab": "∦", "ad": "∦", "ac": "∦", "bc": "∦", "cd": "∦"}
    found = line({"a": 1, "b": 2, "c": of_c, "d": 4}, signs, failed="a")
    assert found == ("b > d ∦ a (2 of 5 failed) (not comparable: c)", ["b", "da"])


def test_where_nothing_is_decided_who_failed_comes_last():
    found = line({"a": 1, "b": 2, "c": 3}, {"ab": "∦", "bc": "∦", "ac": "∦"}, failed="a")
    assert found == ("b ∦ c ∦ a (2 of 5 failed)", ["bca"])


def test_a_circle_is_called_one():
    text, groups = line({"a": 1, "b": 2, "c": 3}, {"ab": ">", "bc": ">", "ac": "≈"} | {"ca": ">"})
    assert groups == ["abc"]
    assert text == "no order of a, b, c: the pairs contradict each other (c > a)"


def test_lines_of_every_load_and_the_last_as_the_ranking():
    one, many = ({"kind": "concurrency", "value": value} for value in (1, 16))
    measured = [
        *cells("llamacpp", 50, load=one), *cells("vllm", 57, load=one),
        *cells("llamacpp", 900, load=many), *cells("vllm", 300, load=many),
    ]  # fmt: skip
    found = compare(measured, RULES)
    assert found.ranking == {METRIC: "vllm >> llamacpp"}
    assert [(made.load.value, made.line) for made in found.rankings] == [
        (1, "llamacpp > vllm"),
        (16, "vllm >> llamacpp"),
    ]
    assert all(made.primary for made in found.rankings)


def served(label, p50, track, quantisation):
    return cells(label, p50, track=track, quantisation=quantisation)


def test_other_weights_stand_in_the_line():
    llamacpp = served("llamacpp", 300, "gguf-q4_1", "Q4_1")
    found = compare([*served("vllm", 100, "bf16", "bf16"), *llamacpp], RULES)
    assert found.ranking == {METRIC: "vllm[bf16] >> llamacpp[Q4_1] (different weights)"}
    (made,) = found.rankings
    assert made.weights == {"vllm": "bf16", "llamacpp": "Q4_1"}
    assert made.groups == (("vllm",), ("llamacpp",))
    equal = compare([*served("ollama", 100, "gguf-q4_1", "Q4_1"), *llamacpp], RULES)
    assert equal.ranking == {METRIC: "ollama >> llamacpp"}
    assert equal.rankings[0].weights is None


def test_backends_that_share_their_weights_are_ranked_among_themselves():
    quick, slow = served("vllm", 100, "bf16", "bf16"), served("sglang", 300, "bf16", "bf16")
    alone = served("llamacpp", 200, "gguf-q4_1", "Q4_1")
    found = compare([*quick, *alone, *slow], RULES)
    assert found.ranking == {METRIC: "[bf16] vllm >> sglang"}
    found = compare([*quick, *alone, *slow, *served("ollama", 201, "gguf-q4_1", "Q4_1")], RULES)
    assert found.ranking == {METRIC: "[Q4_1] llamacpp ≈ ollama; [bf16] vllm >> sglang"}
    first, second = found.rankings
    assert first.groups == (("llamacpp", "ollama"),)
    assert first.weights == {"llamacpp": "Q4_1", "ollama": "Q4_1"}
    assert second.groups == (("vllm",), ("sglang",))
    said = {(one.a, one.b): one.verdict for one in found.comparison}
    assert said["vllm", "llamacpp"] == "faster"


def test_who_shares_weights_that_nobody_knows_is_not_told():
    unknown = [*served("a", 100, None, None), *served("b", 300, None, None)]
    found = compare([*unknown, *served("c", 900, "bf16", "bf16")], RULES)
    assert found.ranking == {METRIC: "a[unknown] >> b[unknown] >> c[bf16] (different weights)"}


def test_weights_of_one_quantisation_and_two_sources_are_told_apart():
    found = compare([*served("a", 100, "bf16", "bf16"), *served("b", 300, "bf16-from-q4_1", "bf16")], RULES)
    assert found.ranking == {METRIC: "a[bf16] >> b[bf16-from-q4_1] (different weights)"}


def test_weights_that_nobody_knows_are_not_taken_for_the_same():
    found = compare([*served("a", 100, "bf16", "bf16"), *served("b", 300, None, None)], RULES)
    assert found.ranking == {METRIC: "a[bf16] >> b[unknown] (different weights)"}
    found = compare([*served("a", 100, None, None), *served("b", 300, None, None)], RULES)
    assert found.ranking == {METRIC: "a >> b"}


def test_weights_of_one_backend_that_are_not_told_are_unknown():
    (found,) = rank(
        [pair("a", "b", "faster", Interval(0.4, 0.5, 0.6))],
        {"a": 1, "b": 2},
        LOAD,
        METRIC,
        RULES,
        {"a": "bf16"},
    )
    assert found.line == "a[bf16] >> b[unknown] (different weights)"
    assert found.weights == {"a": "bf16", "b": "unknown"}


def test_a_circle_of_other_weights_names_them():
    cells_of = [*served("a", 1, "x", "X"), *served("b", 2, "y", "Y")]
    ratio = Interval(0.85, 0.9, 0.95)
    found = [pair("b", "a", "faster", ratio)]
    (made,) = rank(found, {"a": 1, "b": 2}, LOAD, METRIC, RULES, weights_of(cells_of))
    assert made.line.startswith("no order of a[X], b[Y]: ")
    assert made.line.endswith(" (different weights)")


def test_what_figures_do_not_show_follows_the_line_of_those_that_stand_in_it():
    caveat = "native torch kernels, CPU: no verdict on its GPU speed follows"
    known = {"settings": {"caveat": caveat}}
    (found,) = compare([*cells("sglang", 50, conditions=known), *cells("vllm", 20)], RULES).rankings
    assert found.line == f"vllm >> sglang (sglang: {caveat})"
    assert found.groups == (("vllm",), ("sglang",))
    (other,) = compare([*cells("tgi", 50), *cells("vllm", 20)], RULES).rankings
    assert other.line == "vllm >> tgi"
