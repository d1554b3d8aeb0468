"""A verdict in a sentence of the terminal: whole, and with each figure once."""

import pytest

from harness.model import PairVerdict, Summary, Unequal
from harness.report.findings import verdict_words
from tests.factories import documents


def said(word, why, ratio=None, lacks="", metric="ttft_ms.p50"):
    pair = documents.made(
        PairVerdict,
        a="vllm",
        b="sglang",
        metric=metric,
        verdict=word,
        why=why,
        lacks=lacks,
        ratio=ratio,
        runs=[3, 3],
    )
    return verdict_words.sentence(pair)


@pytest.mark.parametrize("ratio", [None, [0.2, 0.25, 0.3]])
def test_a_refusal_is_whole_whether_or_not_there_is_a_ratio(ratio):
    why = "CPU threads: 2 (vllm), 1 (sglang)"
    assert said("not comparable", why, ratio) == f"vllm and sglang: not comparable, {why}"


def test_an_interval_is_not_said_twice():
    lacks = "neither beyond 2% nor within 2%"
    why = f"1.2% lower (3% lower to 1% higher) over 3 pairs: {lacks}"
    assert said("not enough runs", why, [0.97, 0.988, 1.01], lacks) == (
        "vllm and sglang: sglang 1.01× (0.99 to 1.03), undecided: neither beyond 2% nor within 2%"
    )
    assert said("not enough runs", "2 runs each, 3 are needed") == (
        "vllm and sglang: not enough runs, 2 runs each, 3 are needed"
    )


@pytest.mark.parametrize(
    ("metric", "better"), [("ttft_ms.p50", "faster"), ("items_per_s", "faster"), ("victim_loss", "better")]
)
def test_what_is_no_speed_is_better_and_not_faster(metric, better):
    assert (
        said("faster", "", [1.6, 2.0, 2.5], metric=metric) == f"vllm is {better} than sglang, 2× (1.6 to 2.5)"
    )


def test_what_refuses_and_what_widens_is_named_apart():
    unequal = (
        Unequal("usage", ("a",), "usage of a", matters=True, metrics=("tpot_ms",), what="usage of a"),
        Unequal("output-length", ("a",), "", matters=False, metrics=("e2e_ms",), apart=0.04),
        Unequal("page-size", ("a",), "", matters=False, metrics=("e2e_ms",)),
        Unequal("kv-cache", ("a",), "", matters=True, metrics=("power_w",), what="of what nobody compared"),
    )
    pairs = tuple(
        documents.made(PairVerdict, a="a", b="b", metric=metric, verdict="same")
        for metric in ("tpot_ms.p50", "e2e_ms.p50")
    )
    summary = documents.made(Summary, unequal=unequal, comparison=pairs)
    assert list(verdict_words.unequal_in_short(summary)) == [
        "unequal, so that some pairs get no verdict: usage of a",
        "unequal, so that a verdict takes a larger difference: output length",
    ]
