"""The sentence of a load point: who leads and by how much, or what was measured where nobody does."""

import pytest

from harness.report.sentences import sentence
from harness.report.view import groups
from tests.factories.summaries import cell, summary

LOAD = {"kind": "concurrency", "value": 4}
RULES = {"primary": "ttft_ms.p50", "confidence": 0.95}


def pair(a, b, word, ratio=(0.4, 0.5, 0.625)):
    return {
        "a": a,
        "b": b,
        "load": LOAD,
        "metric": "ttft_ms.p50",
        "ratio": list(ratio),
        "runs": [5, 5],
        "verdict": word,
        "why": "so it is",
        "primary": True,
    }


def told(*pairs, p50=(10.0, 20.0, 30.0, 40.0), labels="abcd"):
    cells = [cell(label, p50=value) for label, value in zip(labels, p50, strict=False)]
    made = summary(*cells, comparison=list(pairs), verdict_rules=RULES)
    return sentence(made, groups(made)[0])


@pytest.mark.parametrize(
    "found", [pair("a", "b", "faster"), pair("b", "a", "slower", (1.6, 2.0, 2.5))], ids=["a-b", "b-a"]
)
def test_it_says_who_leads_and_by_how_much(found):
    assert told(found, labels="ab") == "a leads in TTFT p50 with 10.0 ms: faster than b (2×)."


def test_it_keeps_apart_what_was_decided_and_what_was_not():
    pairs = [
        pair("a", "b", "same"),
        pair("a", "c", "faster"),
        pair("a", "d", "not comparable"),
        pair("b", "c", "not enough runs"),
    ]
    assert told(*pairs).endswith("faster than c (2×); the same as b within noise; not comparable with d.")


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("same", "The same in TTFT p50 within noise. "),
        ("not enough runs", ""),
        ("not comparable", "Not comparable in TTFT p50: so it is. "),
    ],
)
def test_without_a_leader_it_says_why_and_what_was_measured(word, why):
    found = told(pair("a", "b", word), labels="ab")
    assert found.startswith(f"{why}a: first token after 10.0 ms (median), 118 output tokens/s; b: first")


def test_nobody_leads_who_is_slower_than_another():
    circle = [pair("a", "b", "faster"), pair("b", "c", "faster"), pair("c", "a", "faster")]
    assert "leads" not in told(*circle, labels="abc")


def test_of_many_backends_without_a_leader_the_range_is_told():
    assert told() == "TTFT p50 from 10.0 ms (a) to 40.0 ms (d)."
